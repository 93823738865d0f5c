/**
 * Lists the ports that URLs from users may not have. A service on such a port might interpret an HTTP request as a
 * command.
 */

/** From the Fetch standard: https://fetch.spec.whatwg.org/#port-blocking */
const ofFetchStandard = [
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
  109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
  526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049,
  3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

const ofServers = [
  // SMB, rsync, remote desktop, VNC
  445, 873, 3389, 5900,
  // SQL Server, Oracle, MySQL, PostgreSQL, PgBouncer
  1433, 1521, 3306, 5432, 5433, 6432,
  // ZooKeeper, Docker, etcd, kubelet
  2181, 2375, 2376, 2379, 2380, 10250,
  // AMQP, Kafka
  5672, 9092,
  // CouchDB, Cassandra, Elasticsearch, MongoDB
  5984, 9042, 9200, 9300, 27017, 27018, 27019,
  // Redis, memcached
  6379, 6380, 11211, 16379, 26379,
];

const refused: ReadonlySet<number> = new Set([...ofFetchStandard, ...ofServers]);

export const isRefusedPort = (port: number): boolean => refused.has(port);
