/** Turns zod schemas into the JSON Schema of an OpenAPI 3.1 document, and gathers what they name as components. */
import { z } from 'zod';

export type Json = { [name: string]: unknown };

/** The component schemas of a document, by name. */
export type Components = Record<string, Json>;

/** What every safe integer fulfils says nothing; a strict result is strict for tests, clients must take new fields. */
function tidy(schema: Json): void {
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
  if (schema.additionalProperties === false) delete schema.additionalProperties;
}

/** Points references into the document. */
function pointed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(pointed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      name === '$ref' && typeof inner === 'string'
        ? inner.replace(/^#\/\$defs\//, '#/components/schemas/')
        : pointed(inner),
    ]),
  );
}

/**
 * The schema as it stands in a document. `input` for what clients send, before it is parsed. Schemas with an `id` go to
 * `components`, which throws when two have one name.
 */
export function documentSchema(schema: z.ZodType, io: 'input' | 'output', components: Components): Json {
  const { $schema, $defs, ...own } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ jsonSchema }) => tidy(jsonSchema as Json),
  });
  for (const [name, definition] of Object.entries($defs ?? {})) {
    const { id: _, ...rest } = pointed(definition) as Json;
    const known = components[name];
    if (known && JSON.stringify(known) !== JSON.stringify(rest))
      throw new Error(`two schemas are called ${name}`);
    components[name] = rest;
  }
  return pointed(own) as Json;
}
