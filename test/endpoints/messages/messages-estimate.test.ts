import { expect, test } from 'vitest'
import { ESTIMATED_TOKENS_PER_FILE, estimateMessageTokens } from '../../../src/endpoints/messages/messages-estimate.ts'

const request = (content: string | { type: string }[], rest = {}): number =>
  estimateMessageTokens({ model: 'm', messages: [{ role: 'user', content }], ...rest })

test('more text, more tools and a system prompt are more tokens', () => {
  const least = request('hello')

  expect(least).toBeGreaterThan(0)
  expect(request('hello'.repeat(30))).toBe(least + Math.ceil((5 * 29) / 3))
  expect(request('hello', { system: 'Be brief.' })).toBeGreaterThan(least)
  expect(request('hello', { tools: [{ name: 'a', input_schema: { type: 'object' } }] })).toBeGreaterThan(least)
})

test('counts every image the same whatever its size, and a cache mark as nothing', () => {
  const picture = (data: string): number => request([imageOf(data)])

  expect(picture('A'.repeat(100_000))).toBe(picture('A'))
  expect(picture('A')).toBeGreaterThan(ESTIMATED_TOKENS_PER_FILE)
  expect(request([{ ...textOf('hi'), cache_control: { type: 'ephemeral' } } as { type: string }])).toBe(
    request([textOf('hi')]),
  )
})

function imageOf(data: string): { type: string } {
  return { type: 'image', source: { type: 'base64', media_type: 'image/png', data } } as { type: string }
}

function textOf(text: string): { type: string; text: string } {
  return { type: 'text', text }
}
