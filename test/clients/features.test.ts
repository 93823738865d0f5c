import { libraryBots, testFeatures } from './features.js';

testFeatures('polling', libraryBots);
