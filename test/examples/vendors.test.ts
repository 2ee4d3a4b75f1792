import { expect, test } from 'vitest'
import { endOfExample } from './support/run-example.ts'

test('the example vendors gets an answer from each, and names what was left out', async () => {
  const { code, output } = await endOfExample('vendors', {})

  expect(code).toBe(0)
  expect(output.trim().split('\n')).toEqual([
    'groq: You said: Say hello (dropped: nothing)',
    'mistral: You said: Say hello (dropped: nothing)',
    'ollama: You said: Say hello (dropped: nothing)',
    'azure: You said: Say hello (dropped: nothing)',
  ])
})
