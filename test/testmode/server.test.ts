/** Runs these tests on one test server, because each start takes seconds of processor time. */
import './worlds.cases.js';
import './faults.cases.js';
