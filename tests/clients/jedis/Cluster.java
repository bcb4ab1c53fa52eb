// A writer with the cluster client of jedis, for tests of nodes that come and go.
//
//   PORT=7001 NAME=x java -cp 'JARS/*' Cluster.java
//
// test_cluster_clients.py says what such a program does.

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import redis.clients.jedis.ClusterCommandObjects;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.timeseries.DuplicatePolicy;
import redis.clients.jedis.timeseries.TSAddParams;
import redis.clients.jedis.timeseries.TSElement;
import redis.clients.jedis.timeseries.TSIncrByParams;

class Cluster {
  static final int BATCH = 5;
  static final String ROWS = "rows:" + System.getenv("NAME");
  static final String SUM = "sum:" + System.getenv("NAME");
  static final RedisClusterClient cluster = connect(10);
  // For what must not be sent twice: no command is sent again whose connection ended.
  static final RedisClusterClient once = connect(1);
  static volatile boolean done = false;

  static RedisClusterClient connect(int attempts) {
    var seed = new HostAndPort("127.0.0.1", Integer.parseInt(System.getenv("PORT")));
    return RedisClusterClient.builder()
        .nodes(Set.of(seed))
        .clientConfig(DefaultJedisClientConfig.builder().readOnlyForRedisClusterReplicas().build())
        .maxAttempts(attempts)
        // The owner may go without a word; it is looked for each second.
        .topologyRefreshPeriod(Duration.ofSeconds(1))
        .build();
  }

  public static void main(String[] arguments) throws Exception {
    var input = new Thread(Cluster::awaitEnd);
    input.setDaemon(true);
    input.start();
    long rows = 0, sent = 0, sum = 0, reads = 0;
    while (!done) {
      var first = rows;
      while (!succeeds(() -> add(first))) Thread.sleep(100);
      rows += BATCH;
      sent++;
      if (succeeds(() -> once.tsIncrBy(SUM, 1, TSIncrByParams.incrByParams().timestamp(1)))) sum++;
      else Thread.sleep(100);
      var newest = read();
      if (newest != null) {
        if (newest.getTimestamp() > rows || newest.getValue() != 3 * newest.getTimestamp())
          throw new AssertionError(newest + " after " + rows + " rows");
        reads++;
      }
      System.out.printf("%d %d %d %d%n", rows, sent, sum, reads);
    }
    System.exit(0);
  }

  static void awaitEnd() {
    try {
      System.in.readAllBytes();
    } catch (java.io.IOException error) {
      // It ended all the same.
    }
    done = true;
  }

  static boolean succeeds(Runnable command) {
    try {
      command.run();
      return true;
    } catch (RuntimeException error) {
      return false;
    }
  }

  /** The rows behind the first ones, in one pipeline. To write them twice changes nothing. */
  static void add(long first) {
    List<Response<Long>> replies = new ArrayList<>();
    try (var pipeline = cluster.pipelined()) {
      for (var at = first + 1; at <= first + BATCH; at++) {
        var last = TSAddParams.addParams().onDuplicate(DuplicatePolicy.LAST);
        replies.add(pipeline.tsAdd(ROWS, at, 3 * at, last));
      }
    }
    // Throws the error of a reply, and where there is none.
    replies.forEach(Response::get);
  }

  /** The newest row, at a follower; null if there is no answer. */
  static TSElement read() {
    try {
      return cluster.executeCommandToReplica(new ClusterCommandObjects(RedisProtocol.RESP2).tsGet(ROWS));
    } catch (RuntimeException error) {
      return null;
    }
  }
}
