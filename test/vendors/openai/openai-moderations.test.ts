import { Buffer } from 'node:buffer'
import { describe, expect, it } from 'vitest'
import type { ModerationRequest } from '../../../src/endpoints/moderations/moderations-endpoint.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { callFromRequest, callFromText, textOf } from '../shared/vendor-call.ts'

const moderations = openai({ apiKey: 'sk-test-0123456789abcdef' }).moderations!
const upstream = 'omni-moderation-latest'
const call = callFromText<ModerationRequest>('{"input": ["red","blue"],"model":"guard"}', { upstream })

function read(text: string, asked = call) {
  return moderations.fromWire([Buffer.from(text)], asked)
}

const RESULT = '{"flagged":false,"categories":{"hate":false},"category_scores":{"hate":1.0e-7}}'
const ANSWER = `{"id": "modr-1","model":"omni-moderation-latest", "results":[${RESULT}, ${RESULT}]}`

describe('openai moderation requests', () => {
  it('pass with the model replaced', () => {
    const wire = moderations.toWire(call)
    expect(wire.path).toBe('/v1/moderations')
    expect(textOf([wire.body])).toBe('{"input": ["red","blue"],"model":"omni-moderation-latest"}')
  })

  it('are serialized again without bytes', () => {
    const wire = moderations.toWire(callFromRequest<ModerationRequest>({ model: 'guard', input: 'red' }, { upstream }))
    expect(JSON.parse(textOf([wire.body]))).toEqual({ model: upstream, input: 'red' })
  })
})

describe('openai moderation answers', () => {
  it('pass with the caller’s model, and the rest byte by byte', () => {
    const answer = read(ANSWER)
    expect(textOf(answer!.chunks)).toBe(ANSWER.replace('omni-moderation-latest', 'guard'))
    expect(answer!.usage).toBeUndefined()
  })

  it.each([
    ['no JSON', 'oops'],
    ['no results', '{"id":"modr-1"}'],
    ['fewer results than texts', `{"results":[${RESULT}]}`],
    ['more results than texts', `{"results":[${RESULT},${RESULT},${RESULT}]}`],
    ['a result without categories', `{"results":[${RESULT},{"flagged":false}]}`],
  ])('are rejected with %s', (_title, text) => {
    expect(read(text)).toBeUndefined()
  })

  it('are charged by reported usage, and do not show the cost of the operator', () => {
    const text = `{"model":"m","results":[${RESULT},${RESULT}],"usage":{"prompt_tokens":7,"total_tokens":7,"cost":0.1}}`
    const answer = read(text, { ...call, isBilled: true })
    expect(answer!.usage).toEqual({ inputTokens: 7, outputTokens: 0 })
    expect(textOf(answer!.chunks)).not.toContain('cost')
    expect(textOf(read(text)!.chunks)).toContain('cost')
  })

  it('have as many results for parts as the vendor returns', () => {
    const parts = callFromRequest<ModerationRequest>({
      model: 'guard',
      input: [
        { type: 'text', text: 'red' },
        { type: 'text', text: 'blue' },
      ],
    })
    expect(read(`{"results":[${RESULT}]}`, parts)).toBeDefined()
  })
})
