import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Set;

/** JDBC over failovers: commits numbers one after the other, wherever the leader is, and says each that is acknowledged. */
public class Failover {
    /** The connection is lost, the node does not lead any more, or what was begun was not run. */
    private static final Set<String> AGAIN = Set.of("08001", "08006", "08003", "57P01", "57P03", "40001", "25006");

    public static void main(String[] arguments) throws Exception {
        long last = Long.parseLong(arguments[1]);
        long acknowledged = 0;
        while (acknowledged < last) {
            try (Connection connection = DriverManager.getConnection(arguments[0])) {
                connection.setAutoCommit(false);
                long there;
                String query = "SELECT coalesce(max(number), 0) FROM ledger WHERE client = 1";
                try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(query)) {
                    rows.next();
                    there = rows.getLong(1);
                }
                connection.commit();
                if (there != acknowledged && there != acknowledged + 1) {
                    throw new IllegalStateException(acknowledged + " acknowledged, " + there + " there");
                }
                acknowledged = there;
                try (Statement update = connection.createStatement();
                        PreparedStatement insert = connection.prepareStatement("INSERT INTO ledger VALUES (1, ?)")) {
                    while (acknowledged < last) {
                        update.executeUpdate("UPDATE hot SET total = total + 1 WHERE id = 1");
                        insert.setLong(1, acknowledged + 1);
                        insert.executeUpdate();
                        connection.commit();
                        acknowledged++;
                        System.out.println(acknowledged);
                    }
                }
            } catch (SQLException error) {
                if (!AGAIN.contains(error.getSQLState())) {
                    throw error;
                }
                System.out.println("again: " + error.getMessage());
            }
        }
    }
}
