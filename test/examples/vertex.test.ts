import { expect, test } from 'vitest'
import { endOfExample } from './support/run-example.ts'

test('the example vertex gets an answer of each family with one token for each vendor', async () => {
  const { code, output } = await endOfExample('vertex', {})

  expect(code).toBe(0)
  expect(output.trim().split('\n')).toEqual([
    'gemini-3.8-flash: You said: Say hello',
    'claude-haiku-4-5@20251001: You said: Say hello',
    'openai/gpt-oss-120b-maas: You said: Say hello',
    'claude-sonnet-5: You said: Say hello',
    'gemini-embedding-001: 3072 numbers',
    'tokens asked for: 2',
  ])
})
