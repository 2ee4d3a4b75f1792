import { Buffer } from 'node:buffer'
import { type CallerUrl, defineEndpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { jsonSchemaOf } from '../json-schema.ts'
import { requestTexts } from '../request-texts.ts'
import type { KindOf } from '../texts.ts'
import { isWebUrl } from '../web-urls.ts'
import { parseVideoRequest, videoSchema } from './parse-video-request.ts'
import { createVideoOperation, type VideosOffer } from './video-operation.ts'
import { VIDEO_PROTOCOLS } from './video-protocols.ts'
import { isGiven, mediaAddresses, type VideoRequest } from './video-request.ts'
import { videoTask } from './video-task.ts'

/**
 * `POST /v1/videos/generations` (API specification, "Video generation request"). The model's protocol decides which of the two
 * layouts `input` and `parameters` have.
 *
 * The requested seconds are held. A vendor that also bills the seconds of reference videos reports more, because their length is
 * unknown before.
 *
 * Prices may depend on `resolution` (`720p`), `aspect_ratio` (`16:9`) and `audio`. `audio` is present, as `false`, only if the
 * model can render without sound, the request asks for that, and it contains no audio, which would be audible anyway.
 */
export const videoEndpoint = defineEndpoint<VideoRequest, VideosOffer>({
  id: 'videos',
  path: '/v1/videos/generations',
  kind: 'video',
  protocols: ({ videos }) => (videos === undefined ? [] : [...VIDEO_PROTOCOLS.keys()]),
  errors: openaiErrors,
  isPaidJob: true,
  parse: parseVideoRequest,
  requestSchema: () => jsonSchemaOf(videoSchema(), 'input'),
  isStream: () => false,
  textBytes: ({ input }) => textBytes(input['prompt']) + textBytes(input['negative_prompt']),
  estimate: (request) => ({ videoSeconds: request.duration }),
  priceFields: (request, model) => ({
    resolution: request.resolution,
    aspect_ratio: request.aspect_ratio,
    ...(model.video?.canMute === true && isSilent(request) ? { audio: 'false' } : {}),
  }),
  priceFieldNames: ['resolution', 'aspect_ratio', 'audio'],
  callerUrls,
  texts: { request: (request) => requestTexts(request, { kindOf: promptKind, last: ['input'], roleOf: () => 'user' }) },
  createOperation: ({ videos }, call) => videos && createVideoOperation(videos, call),
  task: videoTask,
})

const promptKind: KindOf = (name) => (/prompt$/.test(name) ? 'text' : undefined)

function isSilent({ input, parameters }: VideoRequest): boolean {
  return parameters?.['audio'] === false && !isGiven(input['audio_url'])
}

function textBytes(text: unknown): number {
  return typeof text === 'string' ? Buffer.byteLength(text) : 0
}

/** Addresses of the webhook and of media on the web. Inline images and files at the vendor have none. */
function callerUrls({ input, webhook_url }: VideoRequest): readonly CallerUrl[] {
  const media = mediaAddresses(input).filter(({ url }) => isWebUrl(url))
  return webhook_url === undefined ? media : [...media, { url: webhook_url, param: 'webhook_url', isCalledHere: true }]
}
