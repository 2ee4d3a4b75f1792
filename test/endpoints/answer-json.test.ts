import { describe, expect, test } from 'vitest'
import { MAX_ANSWER_ITEMS, parseAnswerJson } from '../../src/endpoints/answer-json.ts'

const many = (count: number, item: unknown = {}) => Array.from({ length: count }, () => item)
const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }

/** Answers and events of each dialect with a number of items in their deepest list, and the items above it. */
const DIALECTS: Record<string, readonly [above: number, of: (items: unknown[]) => unknown]> = {
  'choices of a chat': [0, (items) => ({ choices: items })],
  'tool calls of a message': [1, (items) => ({ choices: [{ message: { tool_calls: items } }] })],
  'tool calls of a delta': [1, (items) => ({ choices: [{ delta: { tool_calls: items } }] })],
  'annotations of a message': [1, (items) => ({ choices: [{ message: { annotations: items } }] })],
  'blocks of a message': [0, (items) => ({ type: 'message', content: items })],
  'blocks of Converse': [0, (items) => ({ output: { message: { content: items } } })],
  candidates: [0, (items) => ({ candidates: items })],
  'parts of a candidate': [1, (items) => ({ candidates: [{ content: { parts: items } }] })],
  'items of a response': [0, (items) => ({ object: 'response', output: items })],
  'items of an event with a response': [0, (items) => ({ type: 'response.completed', response: { output: items } })],
  'content of an item': [0, (items) => ({ type: 'response.output_item.done', item: { content: items } })],
}

describe.each(Object.entries(DIALECTS))('%s', (_name, [above, of]) => {
  test('are read up to 1,024 items, and not beyond', () => {
    const fitting = of(many(MAX_ANSWER_ITEMS - above, call))

    expect(parseAnswerJson(JSON.stringify(fitting))).toEqual(fitting)
    expect(parseAnswerJson(JSON.stringify(of(many(MAX_ANSWER_ITEMS - above + 1, call))))).toBeUndefined()
    expect(parseAnswerJson(JSON.stringify(of(many(MAX_ANSWER_ITEMS - above + 1, 1))))).toBeUndefined()
  })
})

test('does not count probabilities of tokens, arguments of calls and embedded data', () => {
  const answer = {
    choices: [{ message: { content: 'a', audio: { data: 'x'.repeat(9_000) } }, logprobs: { content: many(9_000) } }],
    content: [{ type: 'tool_use', input: { rows: many(9_000) } }],
  }

  expect(parseAnswerJson(JSON.stringify(answer))).toEqual(answer)
})

test('returns undefined for a text that is not JSON', () => {
  expect(parseAnswerJson('{')).toBeUndefined()
})
