import { readFileSync } from 'node:fs'
import { FinishReason } from '@google/genai'
import { describe, expect, test } from 'vitest'
import { chatCall, jsonAnswer, NOW_MS, vendor } from './gemini-call.ts'

function fixture(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`./fixtures/answers/${name}.json`, import.meta.url), 'utf8'))
}

function read(body: unknown) {
  return vendor.chat?.fromWire(jsonAnswer(body), chatCall())
}

describe('golden answers', () => {
  test('thoughts, text and calls each find their place, signatures included', () => {
    const answer = read(fixture('thinking-and-tools'))

    expect(answer?.completion).toEqual({
      id: 'r-7Qx_2',
      object: 'chat.completion',
      created: NOW_MS / 1000,
      model: 'gmn-test',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: 'Let me look.',
            refusal: null,
            reasoning_content: 'I need both cities.',
            tool_calls: [
              {
                id: 'fc-1',
                type: 'function',
                function: { name: 'weather', arguments: '{"city":"Oslo"}' },
                extra_content: { google: { thought_signature: 'U0lHMQ==' } },
              },
              {
                id: 'call_r-7Qx_2_0_1',
                type: 'function',
                function: { name: 'weather', arguments: '{"city":"Bergen"}' },
              },
              { id: 'call_r-7Qx_2_0_2', type: 'function', function: { name: 'now', arguments: '{}' } },
            ],
          },
          logprobs: null,
          finish_reason: 'tool_calls',
        },
      ],
      usage: {
        prompt_tokens: 130,
        completion_tokens: 75,
        total_tokens: 205,
        prompt_tokens_details: { cached_tokens: 64 },
        completion_tokens_details: { reasoning_tokens: 45 },
      },
    })
    expect(answer?.usage).toEqual({ inputTokens: 130, cachedInputTokens: 64, outputTokens: 75, reasoningTokens: 45 })
  })

  test('several candidates become choices, with their log probabilities; zeros of usage are kept', () => {
    const answer = read(fixture('several-candidates'))

    expect(answer?.completion.choices).toEqual([
      {
        index: 0,
        message: { role: 'assistant', content: 'Blue', refusal: null },
        logprobs: {
          content: [
            {
              token: 'Blue',
              logprob: -0.25,
              bytes: [66, 108, 117, 101],
              top_logprobs: [
                { token: 'Blue', logprob: -0.25, bytes: [66, 108, 117, 101] },
                { token: 'Röd', logprob: -1.5, bytes: [82, 195, 182, 100] },
              ],
            },
          ],
          refusal: null,
        },
        finish_reason: 'stop',
      },
      {
        index: 1,
        message: {
          role: 'assistant',
          content: 'Green',
          refusal: null,
          extra_content: { google: { thought_signature: 'TVNH' } },
        },
        logprobs: null,
        finish_reason: 'length',
      },
      {
        index: 2,
        message: { role: 'assistant', content: '', refusal: null },
        logprobs: null,
        finish_reason: 'content_filter',
      },
    ])
    expect(answer?.usage).toEqual({ inputTokens: 9, cachedInputTokens: 0, outputTokens: 0 })
  })

  test('a blocked prompt is an empty answer with content_filter, and its prompt is charged', () => {
    const answer = read(fixture('blocked-prompt'))

    expect(answer?.completion.choices).toEqual([
      {
        index: 0,
        message: { role: 'assistant', content: '', refusal: null },
        logprobs: null,
        finish_reason: 'content_filter',
      },
    ])
    expect(answer?.usage).toEqual({ inputTokens: 14, outputTokens: 0 })
  })

  test.each([
    ['no usage', {}, { outputTokens: 0 }],
    ['only its prompt', { usageMetadata: { promptTokenCount: 14 } }, { inputTokens: 14, outputTokens: 0 }],
  ])('a blocked prompt that reports %s generated nothing', (_what, report, usage) => {
    expect(read({ promptFeedback: { blockReason: 'SAFETY' }, ...report })?.usage).toEqual(usage)
  })

  test('a signature goes through an answer and back into the next request unchanged', () => {
    const message = read(fixture('thinking-and-tools'))?.completion.choices[0]?.message
    const next = chatCall(
      { messages: [{ role: 'user', content: 'Weather?' }, ...(message === undefined ? [] : [message])] },
      { upstream: 'gemini-3.1-pro' },
    )

    const body = JSON.parse(String(vendor.chat?.toWire(next).body))

    expect(body.contents[1].parts).toEqual([
      { text: 'Let me look.' },
      { functionCall: { id: 'fc-1', name: 'weather', args: { city: 'Oslo' } }, thoughtSignature: 'U0lHMQ==' },
      { functionCall: { id: 'call_r-7Qx_2_0_1', name: 'weather', args: { city: 'Bergen' } } },
      { functionCall: { id: 'call_r-7Qx_2_0_2', name: 'now', args: {} } },
    ])
  })
})

describe('finish reasons', () => {
  const text = (finishReason: string) => ({ candidates: [{ content: { parts: [{ text: 'x' }] }, finishReason }] })

  test.each([
    ['STOP', 'stop'],
    ['MAX_TOKENS', 'length'],
    ['CONTINUATION', 'length'],
    ['SAFETY', 'content_filter'],
    ['RECITATION', 'content_filter'],
    ['BLOCKLIST', 'content_filter'],
    ['PROHIBITED_CONTENT', 'content_filter'],
    ['SPII', 'content_filter'],
    ['MODEL_ARMOR', 'content_filter'],
    ['IMAGE_SAFETY', 'content_filter'],
    ['IMAGE_PROHIBITED_CONTENT', 'content_filter'],
    ['IMAGE_RECITATION', 'content_filter'],
    ['LANGUAGE', 'content_filter'],
    ['OTHER', 'content_filter'],
    ['NO_IMAGE', 'content_filter'],
    ['IMAGE_OTHER', 'content_filter'],
    ['ESCALATION', 'content_filter'],
    ['PUP_LIMITED_DISABLED', 'content_filter'],
    ['A_REASON_OF_TOMORROW', 'content_filter'],
  ])('%s is %s', (reason, expected) => {
    expect(read(text(reason))?.completion.choices[0]?.finish_reason).toBe(expected)
  })

  test('every reason of the official SDK is known by name', () => {
    const source = ['chat-from-wire', 'api-request']
      .map((name) => readFileSync(new URL(`../../../src/vendors/gemini/${name}.ts`, import.meta.url), 'utf8'))
      .join('')
    const unknown = Object.values(FinishReason).filter((reason) => !source.includes(`'${reason}'`))

    // "Default value. This value is unused."
    expect(unknown).toEqual(['FINISH_REASON_UNSPECIFIED'])
  })

  test('a call that ran into the token limit is length, not tool_calls', () => {
    const body = { candidates: [{ content: { parts: [{ functionCall: { name: 'f' } }] }, finishReason: 'MAX_TOKENS' }] }

    expect(read(body)?.completion.choices[0]?.finish_reason).toBe('length')
  })

  test.each([
    'MALFORMED_FUNCTION_CALL',
    'MALFORMED_RESPONSE',
    'UNEXPECTED_TOOL_CALL',
    'TOO_MANY_TOOL_CALLS',
    'MISSING_THOUGHT_SIGNATURE',
  ])('%s is a failure of the vendor with its explanation', (reason) => {
    const body = { candidates: [{ content: {}, finishReason: reason, finishMessage: 'call:f(a=' }] }

    expect(read(body)).toBeUndefined()
    const failure = {
      kind: 'invalid_response',
      code: reason,
      message: expect.stringContaining('call:f(a='),
    }
    expect(vendor.errorFrom(jsonAnswer(body), NOW_MS)).toMatchObject(failure)

    const usageMetadata = { promptTokenCount: 8, thoughtsTokenCount: 90, totalTokenCount: 98 }
    expect(vendor.chat?.brokenAnswer?.(jsonAnswer(body), chatCall())).toBeUndefined()
    expect(vendor.chat?.brokenAnswer?.(jsonAnswer({ ...body, usageMetadata }), chatCall())).toEqual({
      failure: { ...failure, status: 200 },
      usage: { inputTokens: 8, outputTokens: 90, reasoningTokens: 90 },
    })
  })
})

describe('answers that are not what the vendor promises', () => {
  test.each([
    ['no JSON', 'oops'],
    ['a list', []],
    ['nothing', {}],
    ['a candidate that says nothing', { candidates: [{ content: {}, index: 0 }] }],
    ['an unspecified block reason', { promptFeedback: { blockReason: 'BLOCK_REASON_UNSPECIFIED' } }],
    ['an error in disguise', { error: { code: 503, message: 'overloaded', status: 'UNAVAILABLE' } }],
  ])('%s gives nothing', (_case, body) => {
    expect(read(body)).toBeUndefined()
  })

  test('returns undefined for bytes that are not JSON', () => {
    const answer = { status: 200, headers: {}, body: new TextEncoder().encode('<html>') }

    expect(vendor.chat?.fromWire(answer, chatCall())).toBeUndefined()
  })

  test('a whole answer that forgot its reason has stopped', () => {
    expect(read({ candidates: [{ content: { parts: [{ text: 'x' }] } }] })?.completion.choices[0]?.finish_reason).toBe(
      'stop',
    )
  })

  test('an answer without an id or usage still has an id, and no usage', () => {
    const answer = read({ candidates: [{ content: { parts: [{ text: 'x' }] }, finishReason: 'STOP' }] })

    expect(answer?.completion.id).toMatch(/^gemini-[0-9a-z]+$/)
    expect(answer?.usage).toBeUndefined()
    expect(answer?.completion).not.toHaveProperty('usage')
  })
})
