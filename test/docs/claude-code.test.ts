import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../src/core/errors.ts'
import { chatRequestFromMessages, reasoningEffort } from '../../src/endpoints/messages/chat-request-from-messages.ts'
import { ESTIMATED_TOKENS_PER_FILE } from '../../src/endpoints/messages/messages-estimate.ts'
import type { MessagesRequest } from '../../src/endpoints/messages/messages-request.ts'
import { ENDPOINTS } from '../../src/endpoints/registry.ts'
import { ESTIMATED_BYTES_PER_TOKEN } from '../../src/endpoints/token-estimate.ts'
import { matchRoute } from '../../src/gateway/routes.ts'
import { EndpointTable } from '../../src/pipeline/pipeline-context.ts'
import { anthropicError } from '../support/error-body.ts'
import { firstTable, readPage, section } from './support/markdown.ts'

const page = readPage('docs/claude-code.md')
const endpoints = new EndpointTable(ENDPOINTS)
const HELLO: MessagesRequest = { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'hello' }] }

test('the paths of the page exist, with their methods', () => {
  const named = [...page.text.matchAll(/`(GET|HEAD|POST) (\/[\w/]+)`/g)]

  expect(named.length).toBeGreaterThan(3)
  for (const [, method = '', path = ''] of named)
    expect(matchRoute(endpoints, method, path), path).toHaveProperty('target')
})

test('the page shows the type of error for each status', () => {
  const [, ...rows] = firstTable(section(page, 'Errors'))

  expect(rows.length).toBeGreaterThan(5)
  for (const [status, type] of rows) {
    const error = new GatewayError('invalid_request', { status: Number(status) })
    expect(anthropicError(error)['error']).toMatchObject({ type })
  }
})

describe('the translation', () => {
  const [, ...rows] = firstTable(section(page, 'Models of other vendors'))

  test('knows every field of the page', () => {
    const values: Readonly<Record<string, unknown>> = {
      system: 'A',
      thinking: { type: 'enabled', budget_tokens: 4000 },
      'output_config.effort': { effort: 'low' },
      'output_config.format': { format: { type: 'json_schema', schema: {} } },
      tools: [{ name: 'a', input_schema: { type: 'object' } }],
      stop_sequences: ['a'],
      max_tokens: 5,
      'metadata.user_id': { user_id: 'u-77' },
    }
    const fields = rows
      .flatMap(([part = '']) => part.replaceAll('`', '').split(', '))
      .filter((field) => Object.hasOwn(values, field))

    expect(fields.sort()).toEqual(Object.keys(values).sort())
    for (const field of fields) {
      const request = { ...HELLO, [field.split('.')[0]!]: values[field] }
      expect(chatRequestFromMessages(request).dropped, field).toEqual([])
    }
  })

  test('draws the lines between efforts where the page says', () => {
    const row = rows.find(([part]) => part?.includes('output_config.effort'))?.[1] ?? ''
    const lines = [...row.matchAll(/(\d+),(\d{3})/g)].map(([, high, low]) => Number(`${high}${low}`))
    const effort = (budget: number): unknown =>
      reasoningEffort({ ...HELLO, thinking: { type: 'enabled', budget_tokens: budget } }, () => undefined)

    expect(lines).toHaveLength(2)
    expect(lines.flatMap((line) => [effort(line - 1), effort(line)])).toEqual(['low', 'medium', 'medium', 'high'])
  })
})

test('the page names the rule of the estimate', () => {
  const text = section(page, 'Counting tokens').replaceAll('\n', ' ')

  expect(ESTIMATED_BYTES_PER_TOKEN).toBe(3)
  expect(text).toContain(`three bytes of text per token, and ${ESTIMATED_TOKENS_PER_FILE.toLocaleString('en')} tokens`)
})
