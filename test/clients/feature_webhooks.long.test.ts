/** Each library serves a webhook whose certificate it uploads itself. */
import { testFeatures } from './features.js';

testFeatures('a webhook');
