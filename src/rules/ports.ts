/** Forbidden ports for user-supplied URLs: their services might misinterpret an HTTP request as a command. */

/** https://fetch.spec.whatwg.org/#port-blocking */
const ofFetchStandard = [
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
  109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
  526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049,
  3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

/** Databases, message queues and machine management. */
const ofServers = [
  445, // SMB
  873, // rsync
  1433, // SQL Server
  1521, // Oracle
  2181, // ZooKeeper
  2375, // Docker
  2376,
  2379, // etcd
  2380,
  3306, // MySQL
  3389, // remote desktop
  5432, // PostgreSQL
  5433,
  5672, // AMQP
  5900, // VNC
  5984, // CouchDB
  6379, // Redis
  6380,
  6432, // PgBouncer
  9042, // Cassandra
  9092, // Kafka
  9200, // Elasticsearch
  9300,
  10250, // kubelet
  11211, // memcached
  16379, // Redis Cluster bus
  26379, // Sentinel
  27017, // MongoDB
  27018,
  27019,
];

const refused: ReadonlySet<number> = new Set([...ofFetchStandard, ...ofServers]);

export const isRefusedPort = (port: number): boolean => refused.has(port);
