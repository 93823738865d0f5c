import { testFeatures } from './features.js';

testFeatures('polling');
