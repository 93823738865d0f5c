/** Declares a function of `pg` that converts parameters, because the types of `pg` lack it. */
declare module 'pg/lib/utils.js' {
  const utils: {
    /** Converts a parameter to the value that `pg` sends. Throws if the parameter has a circular structure. */
    prepareValue(value: unknown): string | Buffer | null;
  };
  export default utils;
}
