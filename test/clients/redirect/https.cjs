/** Sends the requests of a program for api.telegram.org to API_ROOT. Node loads this before the program. */
const http = require('node:http');
const https = require('node:https');

const root = new URL(process.env.API_ROOT);
const { request } = https;

https.request = (options, ...rest) => {
  if ((options.hostname ?? options.host) !== 'api.telegram.org') return request(options, ...rest);
  const { hostname, port } = root;
  return http.request(
    { ...options, protocol: 'http:', host: hostname, hostname, port, agent: undefined },
    ...rest,
  );
};
