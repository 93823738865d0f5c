/** Writes the body of the OpenAPI document to `dist/` during the build. Fronts then need not build it. */
import { writeFileSync } from 'node:fs';
import { endpoints } from '../endpoints/endpoints.gen.js';
import { methods } from '../methods/methods.gen.js';
import { documentBody } from './openapi.js';
import { bodyFile, placeholder } from './reference.js';

writeFileSync(bodyFile, JSON.stringify(documentBody({ methods, endpoints }, placeholder)));
