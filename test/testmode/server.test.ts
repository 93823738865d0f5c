/** Runs these tests on one test server, because each start takes seconds of processor time. The last move the clock. */
import './worlds.cases.js';
import './faults.cases.js';
import './replay.cases.js';
import './clock.cases.js';
