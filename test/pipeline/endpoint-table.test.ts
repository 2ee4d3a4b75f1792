import { expect, test } from 'vitest'
import { openaiErrors } from '../../src/endpoints/error-dialect.ts'
import { anthropicErrors } from '../../src/endpoints/messages/messages-errors.ts'
import { ENDPOINTS } from '../../src/endpoints/registry.ts'
import { EndpointTable } from '../../src/pipeline/pipeline-context.ts'

const endpoints = new EndpointTable(ENDPOINTS)
const callerWith = (headers: Readonly<Record<string, string>>) => ({ header: (name: string) => headers[name] })
const anthropicClient = callerWith({ 'anthropic-version': '2023-06-01', 'x-api-key': 'k' })

test.each([
  ['a path below an endpoint', '/v1/messages/nothing', callerWith({}), anthropicErrors],
  ['an unknown path', '/v1/nothing', callerWith({ 'x-api-key': 'k' }), openaiErrors],
  ['an unknown path, asked for by a client of another dialect', '/v1/complete', anthropicClient, anthropicErrors],
  ['a list of models, asked for by such a client', '/v1/models', anthropicClient, anthropicErrors],
  ["another endpoint's path, asked for by such a client", '/v1/chat/completions', anthropicClient, openaiErrors],
])('errors at %s are in the dialect that the caller reads', (_what, path, caller, dialect) => {
  expect(endpoints.errorsAt(path, caller)).toBe(dialect)
})
