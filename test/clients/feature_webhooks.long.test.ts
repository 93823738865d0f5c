/** Tests libraries that serve a webhook and upload the certificate of the webhook themselves. */
import { libraryBots, testFeatures } from './features.js';

testFeatures('a webhook', libraryBots);
