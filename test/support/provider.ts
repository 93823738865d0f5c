export const providerSettings = {
  JWT_JWKS_FILE: '/nowhere/keys.json',
  JWT_ISSUER: 'https://id.example/',
  JWT_AUDIENCE: 'petrel',
} as const;
