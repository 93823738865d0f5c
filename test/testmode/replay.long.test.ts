/** Runs these tests on one test server. The last tests move its clock. */
import './replay.cases.js';
import './clock.cases.js';
