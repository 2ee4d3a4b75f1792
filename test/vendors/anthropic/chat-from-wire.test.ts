import { describe, expect, it } from 'vitest'
import { chatCall, chatOperation } from './chat-call.ts'

const read = (text: string) =>
  chatOperation().fromWire({ status: 200, headers: {}, body: new TextEncoder().encode(text) }, chatCall({}))

const message = (more: Record<string, unknown>) =>
  JSON.stringify({ id: 'msg_1', type: 'message', role: 'assistant', content: [{ type: 'text', text: 'Hi' }], ...more })

const choiceOf = (more: Record<string, unknown>) => read(message(more))?.completion.choices[0]

describe('a whole answer of Anthropic', () => {
  it.each([
    ['HTML', '<html></html>'],
    ['nothing', ''],
    ['an array', '[]'],
    ['an error in disguise', '{"type":"error","error":{"type":"api_error","message":"x"}}'],
    ['a message without content', '{"type":"message","id":"msg_1"}'],
  ])('is rejected if it is %s', (_what, text) => {
    expect(read(text)).toBeUndefined()
  })

  it.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['pause_turn', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['refusal', 'content_filter'],
    ['compaction', 'stop'],
    ['a_reason_of_tomorrow', 'content_filter'],
    [null, 'stop'],
  ])('maps the stop reason %s to the finish reason %s', (stopReason, expected) => {
    expect(choiceOf({ stop_reason: stopReason })?.finish_reason).toBe(expected)
  })

  it.each([
    ['end_turn', 'tool_calls'],
    ['tool_use', 'tool_calls'],
    ['max_tokens', 'length'],
  ])('maps the stop reason %s to %s for a tool call', (stopReason, expected) => {
    const content = [{ type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }]

    const choice = choiceOf({ content, stop_reason: stopReason })

    expect(choice?.finish_reason).toBe(expected)
    expect(choice?.message.content).toBeNull()
  })

  it('leaves out a tool call without an id', () => {
    const content = [
      { type: 'text', text: 'Hi' },
      { type: 'tool_use', name: 'f', input: {} },
    ]

    expect(choiceOf({ content, stop_reason: 'tool_use' })).toMatchObject({
      finish_reason: 'stop',
      message: { role: 'assistant', content: 'Hi', refusal: null },
    })
  })

  it('without content after tool results is an empty text', () => {
    expect(choiceOf({ content: [], stop_reason: 'end_turn' })?.message).toEqual({
      role: 'assistant',
      content: '',
      refusal: null,
    })
  })

  it('keeps a hidden thinking block for the next turn and shows no reasoning', () => {
    const hidden = { type: 'thinking', thinking: '', signature: 'EqQB' }

    const answer = choiceOf({ content: [hidden, { type: 'text', text: 'Hi' }] })?.message

    expect(answer).toEqual({ role: 'assistant', content: 'Hi', refusal: null, thinking_blocks: [hidden] })
  })

  it('passes over blocks and members it does not know', () => {
    const content = [
      null,
      'x',
      { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
      { type: 'text', text: 'Hi' },
    ]

    expect(choiceOf({ content, safeguard_results: {} })?.message.content).toBe('Hi')
  })

  it('has no usage when the vendor gave none', () => {
    const result = read(message({}))

    expect(result?.usage).toBeUndefined()
    expect(result?.completion).not.toHaveProperty('usage')
  })
})
