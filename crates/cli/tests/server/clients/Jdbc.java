import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/** JDBC against a server: the argument is the connection's URL. */
public class Jdbc {
    static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    public static void main(String[] arguments) throws Exception {
        try (Connection connection = DriverManager.getConnection(arguments[0])) {
            try (Statement statement = connection.createStatement()) {
                statement.execute("DROP TABLE IF EXISTS jdbc_items");
                statement.execute(
                    "CREATE TABLE jdbc_items (id integer PRIMARY KEY, name varchar(40), price numeric(10, 2))");
            }
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO jdbc_items VALUES (?, ?, ?)")) {
                for (int id = 1; id <= 20; id++) {
                    insert.setInt(1, id);
                    insert.setString(2, "n" + id);
                    insert.setBigDecimal(3, new BigDecimal("1.25"));
                    insert.addBatch();
                }
                int[] counts = insert.executeBatch();
                check(counts.length == 20 && counts[19] == 1, "a batch");
            }
            // The driver turns to a named statement, and to binary, after five uses.
            try (PreparedStatement select =
                    connection.prepareStatement("SELECT id, name, price FROM jdbc_items WHERE id = ?")) {
                for (int id = 1; id <= 20; id++) {
                    select.setInt(1, id);
                    try (ResultSet rows = select.executeQuery()) {
                        check(rows.next(), "a row");
                        check(rows.getInt(1) == id && rows.getString(2).equals("n" + id), "its values");
                        check(rows.getBigDecimal(3).equals(new BigDecimal("1.25")), "its price");
                        check(!rows.next(), "one row");
                    }
                }
            }
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement()) {
                // Rows come some at a time, inside a transaction.
                statement.setFetchSize(7);
                int seen = 0;
                try (ResultSet rows = statement.executeQuery("SELECT id FROM jdbc_items ORDER BY id")) {
                    while (rows.next()) {
                        seen++;
                        check(rows.getInt(1) == seen, "order");
                    }
                }
                check(seen == 20, "all rows");
                check(statement.executeUpdate("UPDATE jdbc_items SET name = 'x' WHERE id <= 5") == 5, "a count");
            }
            connection.rollback();
            connection.setAutoCommit(true);
            try (Statement statement = connection.createStatement();
                    ResultSet rows = statement.executeQuery("SELECT name FROM jdbc_items WHERE id = 1")) {
                check(rows.next() && rows.getString(1).equals("n1"), "what was rolled back");
            }
            try (Statement statement = connection.createStatement()) {
                statement.execute("INSERT INTO jdbc_items VALUES (1, 'again', 0)");
                throw new AssertionError("a key twice");
            } catch (SQLException error) {
                check(error.getSQLState().equals("23505"), "its SQLSTATE: " + error.getSQLState());
            }
            DatabaseMetaData metadata = connection.getMetaData();
            check(metadata.getDatabaseProductName().equals("PostgreSQL"), "the product");
            try (ResultSet columns = metadata.getColumns(null, "public", "jdbc_items", null)) {
                int seen = 0;
                while (columns.next()) {
                    seen++;
                }
                check(seen == 3, "columns: " + seen);
            }
            try (ResultSet keys = metadata.getPrimaryKeys(null, "public", "jdbc_items")) {
                check(keys.next() && keys.getString("COLUMN_NAME").equals("id"), "the key");
            }
            try (Statement statement = connection.createStatement()) {
                statement.execute("DROP TABLE jdbc_items");
            }
        }
        System.out.println("ok");
    }
}
