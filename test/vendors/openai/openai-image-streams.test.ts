import { Buffer } from 'node:buffer'
import { describe, expect, it } from 'vitest'
import type { ImageEditRequest } from '../../../src/endpoints/image-edits/image-edit-request.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { OpenAIImagesPassThrough } from '../../../src/vendors/shared/openai-images.ts'
import type { StreamTransform } from '../../../src/vendors/vendor.ts'
import { CUTS, type Cut, cutBytes } from '../../support/feed-stream.ts'
import { textOf } from '../shared/vendor-call.ts'
import { jsonCall } from './openai-image-calls.ts'

const KEY = 'sk-test-0123456789abcdef'
const edits = openai({ apiKey: KEY }).imageEdits!

const PARTIAL =
  'event: image_edit.partial_image\n' +
  'data: {"type":"image_edit.partial_image","b64_json":"AA\\/\\"é","partial_image_index":0,"size":"1024x1024"}\n\n'
const USAGE =
  '"usage":{"input_tokens":50,"input_tokens_details":{"text_tokens":10,"image_tokens":40},"output_tokens":372,"total_tokens":422}'
const COMPLETED = `event: image_edit.completed\r\ndata:{"b64_json":"BB","note":"é", ${USAGE},"type":"image_edit.completed"}\r\n\r\n`
const DONE = 'data: [DONE]\n\n'
const USED = { inputTokens: 50, inputImageTokens: 40, outputTokens: 372, outputImageTokens: 372, images: 1 }

function opened(n = 1): StreamTransform {
  return edits.stream!(jsonCall<ImageEditRequest>(`{"model":"gp-image-2","prompt":"a","stream":true,"n":${n}}`))
}

function feed(stream: StreamTransform, text: string, cut: Cut = 'whole'): string {
  return textOf([...cutBytes(Buffer.from(text), cut).map((chunk) => stream.push(chunk)), stream.end()])
}

describe('a stream of images', () => {
  it.each(CUTS.flatMap((cut) => [[cut, ''] as const, [cut, DONE] as const]))(
    'passes untouched, its usage read (%s, end mark: %j)',
    (cut, end) => {
      const stream = opened()
      const text = `: hello\n\n${PARTIAL}${PARTIAL}${COMPLETED}${end}`

      expect(feed(stream, text, cut)).toBe(text)
      expect(stream).toMatchObject({
        hasContent: true,
        isComplete: true,
        failure: undefined,
        usage: USED,
        outputBytesSeen: 0,
        atBoundary: true,
      })
    },
  )

  it('has content with the first image, finished or not, and not before', () => {
    const stream = opened()

    expect(textOf([stream.push(Buffer.from(': wait\n\nevent: other\ndata: {"type":"other"}\n\n'))])).toContain('other')
    expect(stream.hasContent).toBe(false)
    stream.push(Buffer.from(PARTIAL))
    expect(stream).toMatchObject({ hasContent: true, isComplete: false, usage: undefined })
    stream.push(Buffer.from(COMPLETED))
    expect(stream.isComplete).toBe(true)
  })

  it('goes by the name of the event where its data has no type', () => {
    const stream = opened()

    feed(stream, 'event: image_edit.completed\ndata: {"b64_json":"BB"}\n\n')

    expect(stream).toMatchObject({ hasContent: true, isComplete: true, usage: { images: 1 } })
  })

  it('adds up several images and is complete with the last', () => {
    const stream = opened(2)

    stream.push(Buffer.from(COMPLETED))
    expect(stream.isComplete).toBe(false)
    stream.push(Buffer.from(COMPLETED))
    expect(stream).toMatchObject({ isComplete: true, usage: { inputTokens: 100, outputTokens: 744, images: 2 } })
  })

  it.each([
    ['its end mark', DONE],
    ['a clean end', ''],
  ])('is complete with fewer images than requested after %s', (_, end) => {
    const stream = opened(2)

    feed(stream, COMPLETED + end)

    expect(stream).toMatchObject({ isComplete: true, usage: USED })
  })

  it('is incomplete if it ends before a finished image, with or without an end mark', () => {
    for (const text of [PARTIAL, PARTIAL + DONE, '']) {
      const stream = opened()
      expect(feed(stream, text)).toBe(text)
      expect(stream).toMatchObject({ isComplete: false, failure: undefined })
    }
  })

  it('leaves a torn last event out', () => {
    const stream = opened()

    expect(feed(stream, PARTIAL + COMPLETED.slice(0, 90))).toBe(PARTIAL)
    expect(stream).toMatchObject({ isComplete: false, failure: undefined, hasContent: true })
  })

  it('takes a last event whose blank line is missing', () => {
    const stream = opened()

    expect(feed(stream, COMPLETED.slice(0, -2))).toContain('"BB"')
    expect(stream).toMatchObject({ isComplete: true, usage: USED })
  })

  it.each([
    ['an error object', 'data: {"error":{"message":"busy","type":"server_error","param":null,"code":null}}\n\n'],
    ['an event called error', 'event: error\ndata: {"type":"error","code":"server_error","message":"busy"}\n\n'],
    ['an error by its type', 'data: {"type":"error","error":{"type":"server_error","message":"busy"}}\n\n'],
    ['an error of several lines', 'data: {"error":\ndata: {"message":"busy","type":"server_error"}}\n\n'],
  ])('fails with %s, which callers never see', (_, error) => {
    for (const cut of CUTS) {
      const stream = opened()

      expect(feed(stream, PARTIAL + error + COMPLETED, cut)).toBe(PARTIAL)
      expect(stream).toMatchObject({
        isComplete: false,
        failure: { kind: 'unavailable', message: 'busy' },
        usage: undefined,
      })
    }
  })

  it('passes on the text of the filter about an image in progress', () => {
    const stream = opened()
    const type = 'image_generation_user_error'
    const error = { type, code: 'moderation_blocked', message: 'Rejected by the safety system.', param: null }

    feed(stream, `${PARTIAL}event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`)

    expect(stream.failure).toMatchObject({ kind: 'caller', code: 'moderation_blocked', message: error.message, type })
  })

  it('shows no key of the operator in the text of a failure', () => {
    const stream = opened()

    feed(
      stream,
      `data: {"error":{"message":"bad key ${KEY}","code":"invalid_value","type":"invalid_request_error"}}\n\n`,
    )

    expect(stream.failure?.kind).toBe('caller')
    expect(stream.failure?.message).not.toContain(KEY)
  })

  it('stays complete despite an error after the last image', () => {
    const stream = opened()

    expect(feed(stream, `${COMPLETED}data: {"error":{"message":"late"}}\n\n`)).toBe(COMPLETED)
    expect(stream).toMatchObject({ isComplete: true, failure: undefined, usage: USED })
  })

  it.each(['data: no JSON\n\n', 'data: [1]\n\n', 'data: {"type":"image_edit.completed"\n\n'])(
    'cannot be used with the event %j',
    (text) => {
      const stream = opened()

      expect(feed(stream, PARTIAL + text + COMPLETED)).toBe(PARTIAL)
      expect(stream).toMatchObject({ isComplete: false, failure: { kind: 'invalid_response' } })
    },
  )

  it('fails with a clear text on an event beyond the limit', () => {
    const stream = new OpenAIImagesPassThrough({
      pictures: 1,
      streamFailure: () => ({ kind: 'unavailable', status: 0, message: '' }),
      maxEventBytes: 1000,
    })

    expect(stream.push(Buffer.from(`data: {"b64_json":"${'A'.repeat(2000)}`))).toBeUndefined()
    expect(stream.failure).toMatchObject({ kind: 'invalid_response', message: expect.stringMatching(/too large/) })
  })
})
