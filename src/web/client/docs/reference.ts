/** Shows the API reference, which Redoc draws from this host's OpenAPI document. */
import './docs.css';
import { init } from 'redoc/bundles/redoc.standalone.js';
import { startSearch } from './search.js';
import { startTheme } from './theme.js';

startTheme(null);
startSearch(document.querySelector('form') as HTMLFormElement);
init('/openapi.json', { disableTelemetry: true, router: 'hash' }, document.querySelector('#reference'));
