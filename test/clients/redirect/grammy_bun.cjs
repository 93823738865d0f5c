/** Gives the bots of grammY the API root of a test. Bun loads this before the program. */
const { createRequire } = require('node:module');

const grammy = createRequire(process.argv[1])('grammy');

class Bot extends grammy.Bot {
  constructor(token, config = {}) {
    super(token, { ...config, client: { ...config.client, apiRoot: process.env.API_ROOT } });
  }
}

Bun.plugin({
  name: 'API root',
  setup: (builder) => builder.module('grammy', () => ({ exports: { ...grammy, Bot }, loader: 'object' })),
});
