/**
 * Tests interface §§2-4 and 6-8 over HTTP, on one Redis. Each row runs with its data in Redis. A few rows run again
 * after their data were evicted from Redis.
 */
import { freshRedis } from '../support/servers.js';
import { runTable } from './table.js';

runTable('one Redis', freshRedis, 12);
