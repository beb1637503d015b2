// A limit per user as HTTP status and headers. Needs: go get github.com/redis/go-redis/v9
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/redis/go-redis/v9"
)

func allow(ctx context.Context, rdb *redis.Client, user string, header http.Header) (int, error) {
	reply, err := rdb.Do(ctx, "RL.TOKENBUCKET", "user:"+user, "3/m").Int64Slice()
	if err != nil {
		return 0, err
	}
	allowed, remaining, waitMs, resetMs := reply[0], reply[2], reply[3], reply[4]
	if allowed > 0 {
		header.Set("RateLimit", fmt.Sprintf(`"user";r=%d;t=%d`, remaining, (resetMs+999)/1000))
		return http.StatusOK, nil
	}
	retryS := (waitMs + 999) / 1000
	header.Set("RateLimit", fmt.Sprintf(`"user";r=0;t=%d`, retryS))
	header.Set("Retry-After", fmt.Sprint(retryS))
	return http.StatusTooManyRequests, nil
}

func main() {
	url := os.Getenv("REDIS_URL")
	if url == "" {
		url = "redis://127.0.0.1:6379"
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		panic(err)
	}
	ctx, rdb := context.Background(), redis.NewClient(options)
	rdb.Del(ctx, "user:42")
	for i := 0; i < 4; i++ {
		header := http.Header{}
		status, err := allow(ctx, rdb, "42", header)
		if err != nil {
			panic(err)
		}
		fmt.Print(status)
		for _, name := range []string{"RateLimit", "Retry-After"} {
			if value := header.Get(name); value != "" {
				fmt.Printf("  %s: %s", name, value)
			}
		}
		fmt.Println()
	}
}
