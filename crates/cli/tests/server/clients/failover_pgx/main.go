// pgx over failovers: commits numbers one after the other, wherever the leader is, and says each that is acknowledged.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

func main() {
	last, err := strconv.ParseInt(os.Args[2], 10, 64)
	if err != nil {
		panic(err)
	}
	var acknowledged int64
	for acknowledged < last {
		if err := commit(os.Args[1], &acknowledged, last); err != nil {
			fmt.Println("again:", err)
		}
	}
}

func commit(conninfo string, acknowledged *int64, last int64) error {
	within := func(limit time.Duration) (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.Background(), limit)
	}
	ctx, cancel := within(8 * time.Second)
	defer cancel()
	connection, err := pgx.Connect(ctx, conninfo)
	if err != nil {
		return err
	}
	defer connection.Close(context.Background())
	var there int64
	query := "SELECT coalesce(max(number), 0) FROM ledger WHERE client = $1"
	if err := connection.QueryRow(ctx, query, 1).Scan(&there); err != nil {
		return err
	}
	if there != *acknowledged && there != *acknowledged+1 {
		panic(fmt.Sprintf("%d acknowledged, %d there", *acknowledged, there))
	}
	for *acknowledged = there; *acknowledged < last; *acknowledged++ {
		ctx, cancel := within(2 * time.Second)
		err := pgx.BeginFunc(ctx, connection, func(transaction pgx.Tx) error {
			if _, err := transaction.Exec(ctx, "UPDATE hot SET total = total + 1 WHERE id = 1"); err != nil {
				return err
			}
			_, err := transaction.Exec(ctx, "INSERT INTO ledger VALUES ($1, $2)", 1, *acknowledged+1)
			return err
		})
		cancel()
		if err != nil {
			return err
		}
		fmt.Println(*acknowledged + 1)
	}
	return nil
}
