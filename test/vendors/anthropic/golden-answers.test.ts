import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { CUTS, cutBytes } from '../../support/feed-stream.ts'
import { recordingWriter } from '../../support/recording-writer.ts'
import { chatCall, chatOperation, type LooseRequest } from './chat-call.ts'

interface AnswerFixture {
  readonly request: LooseRequest
  readonly answer: unknown
  readonly completion: unknown
  readonly usage: unknown
}

interface StreamFixture {
  readonly request: LooseRequest
  readonly calls: readonly unknown[]
  readonly isComplete: boolean
  readonly usage: unknown
  readonly failure?: unknown
}

const ANSWERS = new URL('./fixtures/answers/', import.meta.url)
const STREAMS = new URL('./fixtures/streams/', import.meta.url)

const answerFiles = readdirSync(ANSWERS)
const streamNames = readdirSync(STREAMS)
  .filter((file) => file.endsWith('.sse'))
  .map((file) => file.slice(0, -'.sse'.length))

function readJson<Value>(directory: URL, file: string): Value {
  return JSON.parse(readFileSync(new URL(file, directory), 'utf8')) as Value
}

function whole(body: unknown) {
  return { status: 200, headers: {}, body: new TextEncoder().encode(JSON.stringify(body)) }
}

describe('golden answers of Anthropic', () => {
  it.each(answerFiles)('reads %s as exactly its chat completion and usage', (file) => {
    const fixture = readJson<AnswerFixture>(ANSWERS, file)

    const result = chatOperation().fromWire(whole(fixture.answer), chatCall(fixture.request))

    expect(result).toStrictEqual({ completion: fixture.completion, usage: fixture.usage })
  })
})

describe('golden streams of Anthropic, in every cut', () => {
  const cases = streamNames.flatMap((name) => CUTS.map((cut) => [name, cut] as const))

  it.each(cases)('reads %s fed %s as exactly its calls', (name, cut) => {
    const fixture = readJson<StreamFixture>(STREAMS, `${name}.json`)
    const bytes = readFileSync(new URL(`${name}.sse`, STREAMS))
    const writer = recordingWriter()
    const decoder = chatOperation().decoder(chatCall(fixture.request, { stream: true }), writer)

    for (const chunk of cutBytes(bytes, cut)) decoder.push(chunk)
    decoder.end()

    expect(writer.calls).toEqual(fixture.calls)
    expect(decoder.isComplete).toBe(fixture.isComplete)
    expect(decoder.usage).toEqual(fixture.usage)
    expect(decoder.failure).toEqual(fixture.failure)
  })
})

describe('a streamed answer and a whole one', () => {
  it.each(answerFiles)('have the same usage, finish reason and tool calls: %s', (file) => {
    const answer = readJson<AnswerFixture>(ANSWERS, file)
    const bytes = readFileSync(new URL(file.replace('.json', '.sse'), STREAMS))
    const call = chatCall(answer.request)
    const writer = recordingWriter()
    const decoder = chatOperation().decoder(call, writer)

    decoder.push(bytes)
    decoder.end()
    const result = chatOperation().fromWire(whole(answer.answer), call)

    const choice = result?.completion.choices[0]
    const streamed = (method: string) => writer.calls.filter(([name]) => name === method).map(([, ...args]) => args)
    expect(decoder.usage).toEqual(result?.usage)
    expect(streamed('finish')).toEqual([[choice?.finish_reason]])
    expect(streamed('text').flat().join('')).toBe(choice?.message.content ?? '')
    expect(streamed('thinkingBlock').flat()).toEqual(choice?.message.thinking_blocks ?? [])
    expect(streamed('toolCall').flat()).toEqual(
      (choice?.message.tool_calls ?? []).map((tool, index) => ({ index, id: tool.id, name: tool.function.name })),
    )
  })
})
