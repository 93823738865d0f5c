/**
 * Creates the URLs of worker scripts. The Content-Security-Policy allows no other Trusted Types policy than the one in
 * this file.
 */
type Create = (url: string) => string;
type Factory = {
  createPolicy(name: string, rules: { createScriptURL: Create }): { createScriptURL: Create };
};

const scripts = ['/app/worker.js', '/app/highlighter.js'] as const;

let policy: { createScriptURL: Create } | undefined;

/** Returns the URL of a script that a worker may run. */
export function scriptUrl(path: (typeof scripts)[number]): string {
  const { trustedTypes } = globalThis as { trustedTypes?: Factory };
  policy ??= trustedTypes?.createPolicy('petrel', {
    createScriptURL(url) {
      if (!scripts.some((one) => one === url)) throw new TypeError('not a script of the application');
      return url;
    },
  });
  return policy?.createScriptURL(path) ?? path;
}
