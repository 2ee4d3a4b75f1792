import type { JsonSchema } from '../endpoints/json-schema.ts'
import {
  ERROR_RESPONSES,
  jsonAnswer,
  type OpenApiDocument,
  type OpenApiOperation,
  type OpenApiParameter,
  type OpenApiPaths,
  openApiDocument,
  pathParameter,
} from '../gateway/openapi/openapi-document.ts'
import type { AdminRoute } from './admin-route.ts'

/** OpenAPI document of the admin API, built from its routes and their schemas. It is served alongside the routes. */
export function adminApi(routes: readonly AdminRoute[]): OpenApiDocument {
  const paths: OpenApiPaths = {}
  for (const route of routes) {
    const path = `/v1${route.path}`
    const methods = paths[path] ?? {}
    paths[path] = methods
    methods[route.method.toLowerCase()] = operationOf(route)
  }
  return openApiDocument({
    title: 'Signalbox admin API',
    description:
      'Accounts, money, keys, usage, vendors and tasks. Amounts are decimal dollars, times Unix milliseconds.',
    credential: 'An operator key.',
    paths,
  })
}

const IDEMPOTENCY_KEY: OpenApiParameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Makes the change once within 24 hours; sent again, it gives the first answer without what is shown once.',
  schema: { type: 'string', pattern: '^[\\x21-\\x7e]{1,200}$' },
}

function operationOf(route: AdminRoute): OpenApiOperation {
  const { query, body, answer } = route.schemas()
  const parameters = [
    ...[...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => pathParameter(name)),
    ...queryParameters(query),
    ...(route.method === 'POST' ? [IDEMPOTENCY_KEY] : []),
  ]
  return {
    operationId: route.id,
    summary: route.summary,
    description: scopesOf(route),
    tags: [route.tag],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
    responses: { 200: answerOf(route, answer), ...ERROR_RESPONSES },
  }
}

function scopesOf({ scope, alsoScope }: AdminRoute): string {
  return alsoScope === undefined
    ? `Takes the scope \`${scope}\`.`
    : `Takes the scopes \`${scope}\` and \`${alsoScope}\`.`
}

function answerOf({ answers, summary }: AdminRoute, schema: JsonSchema | undefined) {
  if (schema !== undefined) return jsonAnswer(summary, schema)
  return { description: summary, content: Object.fromEntries(answers.map((type) => [type, {}])) }
}

function queryParameters(query: JsonSchema | undefined): OpenApiParameter[] {
  const required = (query?.['required'] ?? []) as readonly string[]
  return Object.entries((query?.['properties'] ?? {}) as Readonly<Record<string, JsonSchema>>).map(([name, schema]) => {
    return { name, in: 'query', required: required.includes(name), schema }
  })
}
