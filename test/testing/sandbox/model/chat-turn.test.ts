import { expect, test } from 'vitest'
import { type ChatPrompt, chatTurn, words } from '../../../../src/testing/sandbox/model/chat-turn.ts'

const prompt = (text: string, more: Partial<ChatPrompt> = {}): ChatPrompt => ({
  texts: [text],
  lastUserText: text,
  lastUserImages: 0,
  toolResults: [],
  tools: [],
  toolChoice: 'auto',
  parallelToolCalls: true,
  json: undefined,
  reasoning: false,
  maxTokens: undefined,
  stop: [],
  prefill: '',
  ...more,
})
const tools = ['get', 'get_weather', 'get-time'].map((name) => ({ name, schema: {} }))
const called = (text: string, more: Partial<ChatPrompt> = {}): string[] =>
  chatTurn(prompt(text, { tools, ...more }), { blocked: false }).toolCalls.map((call) => call.name)

test('words joined are the text again, characters outside the basic plane and long runs included', () => {
  const text = `  zwei Wörter\n\n${'🚀世'.repeat(40)} end  `

  expect(words(text).join('')).toBe(text)
  expect(words(text).every((word) => [...word.trim()].length <= 24)).toBe(true)
  expect(words('')).toEqual([])
})

test('calls the tools that a text names, in its order, each as often as it is named', () => {
  expect(called('call get_weather')).toEqual(['get_weather'])
  expect(called('Please Call `get-time`, then get_weather and get_weather again')).toEqual([
    'get-time',
    'get_weather',
    'get_weather',
  ])
  expect(called('call get_weather and get-time', { parallelToolCalls: false })).toEqual(['get_weather'])
})

test('calls nothing unless the word call precedes a whole name', () => {
  expect(called('tell me about get_weather')).toEqual([])
  expect(called('call get_weathers')).toEqual([])
  expect(called('call get_weather', { toolChoice: 'none' })).toEqual([])
  expect(called('call get_weather', { toolResults: ['18 C'] })).toEqual([])
})

test('reasoning counts against the limit, and may use it up', () => {
  const all = chatTurn(prompt('hello', { reasoning: true }), { blocked: false })
  const few = chatTurn(prompt('hello', { reasoning: true, maxTokens: 3 }), { blocked: false })

  expect(all.usage).toMatchObject({ reasoning: 6, completion: 9 })
  expect(few).toMatchObject({ reasoning: ['Let', ' me', ' think'], words: [], ending: 'length' })
})

test('the earliest stop sequence ends the answer and is named', () => {
  const turn = chatTurn(prompt('one two three', { stop: ['three', ' two'] }), { blocked: false })

  expect(turn).toMatchObject({ ending: 'stop-sequence', stopSequence: ' two' })
  expect(turn.words.join('')).toBe('You said: one')
})

test('a blocked prompt costs its prompt and says nothing', () => {
  const turn = chatTurn(prompt('hello', { tools, toolChoice: 'required' }), { blocked: true })

  expect(turn).toMatchObject({ ending: 'blocked', words: [], toolCalls: [], usage: { prompt: 2, completion: 0 } })
})

test('mentions images, and echoes part of a very long prompt', () => {
  const pictures = chatTurn(prompt('look', { lastUserImages: 2 }), { blocked: false })
  const long = chatTurn(prompt('x '.repeat(5000)), { blocked: false })

  expect(pictures.words.join('')).toBe('You said: look (pictures: 2)')
  expect(long.words).toHaveLength(1002)
})
