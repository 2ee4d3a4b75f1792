import { Buffer } from 'node:buffer'
import { describe, expect, it } from 'vitest'
import type { OpenAIImageRequest } from '../../../src/endpoints/images/openai/openai-image-request.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { CUTS, cutBytes } from '../../support/feed-stream.ts'
import { jsonCall } from './openai-image-calls.ts'

const images = openai({ apiKey: 'sk-test-0123456789abcdef' }).images!['generations']!
const call = jsonCall<OpenAIImageRequest>('{"model":"gp-image-2","prompt":"a"}')
const read = (...texts: string[]) =>
  images.fromWire(
    texts.map((text) => Buffer.from(text)),
    call,
  )

const WHOLE =
  '{ "created":1795132800,"background":"opaque","output_format":"webp","quality":"medium","size":"1536x864",\n' +
  ' "data": [ {"b64_json":"UklGR\\/\\\\+é}{][,:\\"","usage":{"input_tokens":1}} , {"b64_json":""} ],' +
  '"usage":{"input_tokens":40,"input_tokens_details":{"text_tokens":30,"image_tokens":10},' +
  '"output_tokens":1200,"output_tokens_details":{"image_tokens":1190,"text_tokens":10},"total_tokens":1240} }\n'

describe('a whole image answer', () => {
  it.each(CUTS)('passes as the very chunks that came, and its usage is read (%s)', (cut) => {
    const chunks = cutBytes(Buffer.from(WHOLE), cut)

    const answer = images.fromWire(chunks, call)

    expect(answer?.chunks).toBe(chunks)
    expect(answer?.usage).toEqual({
      inputTokens: 40,
      inputImageTokens: 10,
      outputTokens: 1200,
      outputImageTokens: 1190,
      images: 2,
    })
  })

  it('counts all output as images if the vendor does not split it', () => {
    expect(read('{"data":[{"b64_json":"AA"}],"usage":{"input_tokens":4,"output_tokens":272}}')?.usage).toEqual({
      inputTokens: 4,
      outputTokens: 272,
      outputImageTokens: 272,
      images: 1,
    })
  })

  it('reports a usage of zero as zero', () => {
    const usage = '{"input_tokens":0,"input_tokens_details":{"image_tokens":0},"output_tokens":0}'

    expect(read(`{"data":[],"usage":${usage}}`)?.usage).toEqual({
      inputTokens: 0,
      inputImageTokens: 0,
      outputTokens: 0,
      outputImageTokens: 0,
      images: 0,
    })
  })

  it('counts images if the vendor reports nothing else', () => {
    expect(
      read('{"created":1,"data":[{"url":"https://a.example/1.png"},{"url":"https://a.example/2.png"}]}')?.usage,
    ).toEqual({
      images: 2,
    })
    expect(read('{"data":[{"b64_json":"AA"}],"usage":null}')?.usage).toEqual({ images: 1 })
    expect(read('{"data":[{"b64_json":"AA"}],"usage":{"input_tokens":"4","output_tokens":null}}')?.usage).toEqual({
      images: 1,
    })
  })

  it('has no image tokens without an image, unless the vendor reports them', () => {
    expect(read('{"data":[]}')?.usage).toEqual({ outputTokens: 0, outputImageTokens: 0, images: 0 })
    expect(read('{"data":[],"usage":{"input_tokens":4,"output_tokens":9}}')?.usage).toMatchObject({ outputTokens: 9 })
  })

  it('passes numbers on as they are, for the check that follows', () => {
    expect(read('{"data":[{}],"usage":{"input_tokens":-1,"output_tokens":1.5}}')?.usage).toMatchObject({
      inputTokens: -1,
      outputTokens: 1.5,
    })
  })

  it.each([
    ['nothing', ''],
    ['no JSON', '<html></html>'],
    ['a list', '[{"b64_json":"AA"}]'],
    ['an error in disguise', '{"error":{"message":"no","type":"server_error"}}'],
    ['an error beside pictures', '{"error":{"message":"no"},"data":[{"b64_json":"AA"}]}'],
    ['no data', '{"created":1}'],
    ['data that is no list', '{"data":{"b64_json":"AA"}}'],
    ['data further inside', '{"answer":{"data":[{"b64_json":"AA"}]}}'],
    ['a body cut in a picture', '{"data":[{"b64_json":"AA'],
    ['a body cut in an escape', '{"data":[{"b64_json":"AA\\'],
    ['a body cut behind its list', '{"data":[{"b64_json":"AA"}]'],
    ['something behind it', '{"data":[{"b64_json":"AA"}]} {}'],
  ])('cannot be used when it is %s', (_, text) => {
    expect(read(text)).toBeUndefined()
  })

  it('is not an error if its error is null', () => {
    expect(read('{"error":null,"data":[{"b64_json":"AA"}]}')?.usage).toEqual({ images: 1 })
  })

  it('passes links on and fetches none', () => {
    const text = '{"data":[{"url":"http://169.254.169.254/latest"}]}'

    expect(Buffer.concat(read(text)?.chunks ?? []).toString()).toBe(text)
  })
})
