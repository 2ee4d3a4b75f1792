import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defineEndpoint } from '../../../src/endpoints/endpoint.ts'
import { openaiErrors } from '../../../src/endpoints/error-dialect.ts'
import { ENDPOINTS } from '../../../src/endpoints/registry.ts'
import type { OpenApiDocument } from '../../../src/gateway/openapi/openapi-document.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'

let started: StartedGateway
let document: OpenApiDocument

beforeAll(async () => {
  started = await startGateway({ batches: {} })
  // Without a key: it says nothing about this gateway's accounts.
  document = await (await fetch(`${started.url}/openapi.json`)).json()
})
afterAll(() => started.close())

describe('GET /openapi.json', () => {
  test('is a valid document of OpenAPI 3.1', async () => {
    const validator = new Validator()
    const outcome = await validator.validate(JSON.parse(JSON.stringify(document)))

    expect(outcome.errors).toBeUndefined()
    expect(outcome.valid).toBe(true)
    expect(validator.version).toBe('3.1')
  })

  test('refers only to what is in it', () => {
    const refs = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref)

    expect(new Set(refs)).toEqual(new Set(['#/components/responses/Error']))
  })

  test('has every endpoint, with the rules by which its bodies are checked', () => {
    for (const { path } of ENDPOINTS) expect(document.paths[path]?.['post'], path).toBeDefined()
    const chat = document.paths['/v1/chat/completions']?.['post']?.requestBody?.content['application/json']?.schema
    const images = document.paths['/v1/images/generations']?.['post']?.requestBody?.content['application/json']?.schema

    expect(chat).toMatchObject({ type: 'object', required: ['model', 'messages'] })
    expect(images).toMatchObject({ anyOf: [{ type: 'object' }, { type: 'object' }, { type: 'object' }] })
  })

  test('has what endpoints keep, with every method', () => {
    expect(Object.keys(document.paths['/v1/responses/{id}'] ?? {})).toEqual(['get', 'delete'])
    expect(Object.keys(document.paths['/v1/conversations'] ?? {})).toEqual(['post'])
    expect(Object.keys(document.paths['/v1/conversations/{conversation}'] ?? {})).toEqual(['get', 'post', 'delete'])
    expect(Object.keys(document.paths['/v1/conversations/{conversation}/items/{item}'] ?? {})).toEqual([
      'get',
      'delete',
    ])
    expect(Object.keys(document.paths['/v1/videos/generations'] ?? {})).toEqual(['post', 'get'])
  })

  test('has files and batches where the gateway has them', async () => {
    expect(Object.keys(document.paths['/v1/files'] ?? {})).toEqual(['get', 'post'])
    expect(document.paths['/v1/files']?.['post']?.parameters).toMatchObject([{ name: 'Idempotency-Key', in: 'header' }])
    expect(Object.keys(document.paths['/v1/files/{file}'] ?? {})).toEqual(['get', 'delete'])
    expect(Object.keys(document.paths['/v1/batches/{batch}/cancel'] ?? {})).toEqual(['post'])
    expect(Object.keys(document.paths['/v1/messages/batches'] ?? {})).toEqual(['get', 'post'])
    expect(Object.keys(document.paths['/v1/messages/batches/{batch}'] ?? {})).toEqual(['get', 'delete'])
    expect(Object.keys(document.paths['/v1/messages/batches/{batch}/results'] ?? {})).toEqual(['get'])
    const without = await startGateway()
    const other = (await (await fetch(`${without.url}/openapi.json`)).json()) as OpenApiDocument
    await without.close()
    expect(Object.keys(other.paths).filter((path) => /files|batches/.test(path))).toEqual([])
  })

  test('names no operation twice', () => {
    const names = Object.values(document.paths).flatMap((methods) => Object.values(methods).map((o) => o.operationId))

    expect(new Set(names).size).toBe(names.length)
  })

  test('has only paths and methods that the gateway has', async () => {
    const wrong: string[] = []
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const method of Object.keys(methods)) {
        const response = await fetch(`${started.url}${path.replaceAll(/\{\w+\}/g, 'some-id')}`, {
          method: method.toUpperCase(),
          headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' },
          body: method === 'post' ? '{}' : null,
        })
        const code = response.headers.get('x-signalbox-error-code')
        if (code === 'route_not_found' || code === 'method_not_allowed') wrong.push(`${method} ${path}: ${code}`)
      }
    }

    expect(wrong).toEqual([])
  })

  test("has the host's own endpoints, and is made once for all who ask", async () => {
    let timesMade = 0
    const translate = defineEndpoint({
      id: 'translate',
      path: '/v1/translate',
      kind: 'chat',
      errors: openaiErrors,
      parse: () => ({ model: 'x' }),
      requestSchema: () => {
        timesMade += 1
        return { type: 'object', required: ['text'] }
      },
      isStream: () => false,
      estimate: () => ({}),
      createOperation: () => undefined,
    })
    const other = await startGateway({ endpoints: [translate], vendors: [openai({})] })
    const { paths } = await (await fetch(`${other.url}/openapi.json`)).json()
    await (await fetch(`${other.url}/openapi.json`)).json()
    await other.close()

    expect(timesMade).toBe(1)

    expect(paths['/v1/translate'].post.requestBody.content['application/json'].schema).toEqual({
      type: 'object',
      required: ['text'],
    })
  })
})
