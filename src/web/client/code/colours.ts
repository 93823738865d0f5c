/**
 * Divides code into parts, each of which has one colour. Only the worker loads this file and the highlighting library.
 */
import bash from 'highlight.js/lib/languages/bash';
import c from 'highlight.js/lib/languages/c';
import cpp from 'highlight.js/lib/languages/cpp';
import csharp from 'highlight.js/lib/languages/csharp';
import css from 'highlight.js/lib/languages/css';
import diff from 'highlight.js/lib/languages/diff';
import go from 'highlight.js/lib/languages/go';
import java from 'highlight.js/lib/languages/java';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import php from 'highlight.js/lib/languages/php';
import python from 'highlight.js/lib/languages/python';
import rust from 'highlight.js/lib/languages/rust';
import sql from 'highlight.js/lib/languages/sql';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';
import { createLowlight } from 'lowlight';

const library = createLowlight({
  bash,
  c,
  cpp,
  csharp,
  css,
  diff,
  go,
  java,
  javascript,
  json,
  php,
  python,
  rust,
  sql,
  typescript,
  xml,
  yaml,
});

export type Colour =
  | 'keyword'
  | 'string'
  | 'comment'
  | 'number'
  | 'title'
  | 'name'
  | 'meta'
  | 'added'
  | 'removed';

/** A part of the code: its length in UTF-16 code units, and its colour. '' is the colour of ordinary text. */
export type Part = readonly [length: number, colour: Colour | ''];

/** The colour of each class that the highlighting library assigns. */
const colours: Readonly<Record<string, Colour | ''>> = {
  keyword: 'keyword',
  'selector-tag': 'keyword',
  'template-tag': 'keyword',
  doctag: 'keyword',
  section: 'keyword',
  string: 'string',
  regexp: 'string',
  symbol: 'string',
  link: 'string',
  char: 'string',
  bullet: 'string',
  comment: 'comment',
  quote: 'comment',
  number: 'number',
  literal: 'number',
  title: 'title',
  name: 'title',
  attr: 'name',
  attribute: 'name',
  property: 'name',
  type: 'name',
  built_in: 'name',
  variable: 'name',
  'template-variable': 'name',
  'selector-class': 'name',
  'selector-id': 'name',
  meta: 'meta',
  addition: 'added',
  deletion: 'removed',
  // Code inside a string, such as `${…}`.
  subst: '',
};

interface Node {
  readonly type: string;
  readonly value?: string;
  readonly properties?: { readonly className?: unknown };
  readonly children?: readonly Node[];
}

function colourOf({ properties }: Node, outer: Colour | ''): Colour | '' {
  const [first = ''] = (properties?.className as string[] | undefined) ?? [];
  return colours[first.replace('hljs-', '')] ?? outer;
}

/** Returns the parts of the code in order. The sum of their lengths is the length of the code. */
export function partsOf(language: string, code: string): Part[] {
  const parts: Part[] = [];
  const add = (nodes: readonly Node[], colour: Colour | ''): void => {
    for (const node of nodes) {
      const { length } = node.value ?? '';
      const last = parts.at(-1);
      if (last?.[1] === colour) parts[parts.length - 1] = [last[0] + length, colour];
      else if (length > 0) parts.push([length, colour]);
      if (node.children) add(node.children, colourOf(node, colour));
    }
  };
  add(library.highlight(language, code).children as readonly Node[], '');
  return parts;
}
