/**
 * Tests interface §§2-4 and 6-8 over HTTP, on one Redis. Each row runs twice: with its data in Redis, and after its
 * data were evicted from Redis.
 */
import { freshRedis } from '../support/servers.js';
import { runTable } from './table.js';

runTable('one Redis', freshRedis);
