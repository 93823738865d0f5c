/** Tests interface §§2-4 and 6-8 over HTTP, on a Redis Cluster of three masters. */
import { freshCluster } from '../support/cluster.js';
import { runTable } from './table.js';

runTable('three masters', freshCluster);
