import { expect, test } from 'vitest'
import { changesNothing } from '../../src/endpoints/neutral-values.ts'

test.each<[string, unknown]>([
  ['n', 1],
  ['temperature', 1],
  ['top_p', 1],
  ['presence_penalty', 0],
  ['frequency_penalty', 0],
  ['logit_bias', {}],
  ['logprobs', false],
  ['top_logprobs', 0],
  ['parallel_tool_calls', true],
  ['service_tier', 'auto'],
  ['store', false],
  ['speed', 1],
  ['metadata', {}],
  ['modalities', ['text']],
  ['stop', []],
  ['anything', null],
  ['anything', undefined],
])('%s: %j means the same as nothing', (field, value) => {
  expect(changesNothing(field, value)).toBe(true)
})

test.each<[string, unknown]>([
  ['n', 2],
  ['temperature', 0],
  ['top_p', 0],
  ['presence_penalty', 1],
  ['logprobs', true],
  ['parallel_tool_calls', false],
  ['service_tier', 'flex'],
  ['store', true],
  ['modalities', ['text', 'audio']],
  ['web_search_options', {}],
  ['seed', 0],
  ['anything', false],
  ['anything', []],
  ['constructor', {}],
])('%s: %j asks for something', (field, value) => {
  expect(changesNothing(field, value)).toBe(false)
})
