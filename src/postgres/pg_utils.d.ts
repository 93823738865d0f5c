/** The conversion of parameters in `pg`, which its types lack. */
declare module 'pg/lib/utils.js' {
  const utils: {
    /** Converts a parameter to the value that `pg` sends. Throws if the parameter has a circular structure. */
    prepareValue(value: unknown): string | Buffer | null;
  };
  export default utils;
}
