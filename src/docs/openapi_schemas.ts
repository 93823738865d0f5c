/** Converts zod schemas to the JSON Schema of an OpenAPI 3.1 document, and collects the named schemas as components. */
import { z } from 'zod';

export type Json = { [name: string]: unknown };

export type Components = Record<string, Json>;

/**
 * Removes limits that only say that a number is a safe integer. Allows additional fields, because clients must accept
 * new fields.
 */
function tidy(schema: Json): void {
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
  if (schema.additionalProperties === false) delete schema.additionalProperties;
}

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
 * Converts a zod schema for the document. With `input`, the result describes what clients send, before it is parsed.
 * Adds schemas with an `id` to `components`. Throws if two schemas have the same id.
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
      throw new Error(`two schemas have the name ${name}`);
    components[name] = rest;
  }
  return pointed(own) as Json;
}
