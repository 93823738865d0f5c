/** Lists the languages whose code is coloured, each with the other names that people use for it. */
const names: Readonly<Record<string, string>> = {
  bash: 'sh shell zsh',
  c: 'h',
  cpp: 'c++ cc cxx hpp',
  csharp: 'c# cs',
  css: '',
  diff: 'patch',
  go: 'golang',
  java: '',
  javascript: 'js jsx mjs cjs node',
  json: 'jsonc',
  php: '',
  python: 'py python3',
  rust: 'rs',
  sql: 'postgres postgresql mysql',
  typescript: 'ts tsx mts cts',
  xml: 'html svg xhtml',
  yaml: 'yml',
};

const byName = new Map(
  Object.entries(names).flatMap(([language, others]) =>
    [language, ...others.split(' ')].map((name) => [name, language] as const),
  ),
);
byName.delete('');

export const languageNames: readonly string[] = Object.keys(names);

/** Returns the language that a code block names, or undefined if its code is not coloured. */
export const languageOf = (name: string): string | undefined => byName.get(name.trim().toLowerCase());
