import { Buffer } from 'node:buffer'
import * as z from 'zod'
import type { ModelFacts } from '../../catalog/model-facts.ts'
import { MAX_PLAUSIBLE_COUNT } from '../../catalog/prices/plausible-usage.ts'
import { isSet } from '../../core/json.ts'
import { onDemand } from '../../core/on-demand.ts'
import type { TaskRecord, TaskState } from '../../stores/task-store.ts'
import { joinChunks } from '../../wire/chunks.ts'
import { type CallerUrl, defineEndpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import {
  type AcceptedTask,
  neverStreams,
  type Operation,
  type VendorCall,
  type WireAnswer,
  type WireRequest,
} from '../operation.ts'
import { checkRequest, jsonSchemaOf } from '../schema.ts'
import type { TaskBehaviour, TaskOperation } from '../task.ts'
import { promptTexts } from '../texts.ts'
import { isWebUrl } from '../web-urls.ts'
import { checkRendering, readSize, resolutionsOf, type VideoGeometry, type VideoProtocol } from './video-protocol.ts'
import { VIDEO_PROTOCOLS } from './video-protocols.ts'
import { mediaAddresses, type VideoParts, type VideoRequest, videoFault } from './video-request.ts'

/** Video at one vendor: submitted, then polled. All functions are pure. */
export interface VideoOperation extends TaskOperation {
  /** @throws GatewayError `invalid_request` naming the field if the body does not fit the model's protocol. */
  toWire(call: VendorCall<VideoRequest>): WireRequest
  /** Reads a 2xx answer to a submission. Returns `undefined` if it is malformed. */
  accepted(answer: WireAnswer): AcceptedTask | undefined
}

/** Part of a vendor that handles video. */
export interface VideosOffer {
  readonly videos?: VideoOperation
}

/** Creates the submission of a video at a vendor. Its answer is a task. */
function createVideoOperation(videos: VideoOperation, call: VendorCall<VideoRequest>): Operation {
  return {
    requests: [videos.toWire(call)],
    whole([answer]) {
      const task = answer && videos.accepted({ ...answer, body: joinChunks(answer.chunks) })
      return task && { chunks: [], usage: undefined, task }
    },
    stream: neverStreams,
  }
}

/** How videos are followed, priced by resolution, and shown (API specification, "Video generation request"). */
export const videoTask: TaskBehaviour<VideoRequest, VideosOffer> = {
  settings({ resolution, parameters, webhook_url }) {
    const seed = parameters?.['seed']
    return { variant: resolution, webhookUrl: webhook_url, facts: typeof seed === 'number' ? { seed } : {} }
  },
  operation: ({ videos }) => videos,
  variants: ({ video }, fields) =>
    (video?.resolutions ?? []).map((resolution) => [
      resolution,
      resolution === fields['resolution'] ? fields : { ...fields, resolution },
    ]),
  billedUsage({ videoSeconds }, model) {
    if (videoSeconds === undefined) return undefined
    const most = model?.video?.maxBilledSeconds ?? MAX_PLAUSIBLE_COUNT
    return Number.isFinite(videoSeconds) && videoSeconds > 0 && videoSeconds <= most ? { videoSeconds } : undefined
  },
  receipt: videoReceipt,
  record: videoRecord,
  eventType: (state) => `video.generation.${state}`,
}

/** A task with an unknown submission outcome reads as queued; callers do not have its id before the outcome is known. */
function publicStatus(state: TaskState): string {
  return state === 'submitting' ? 'queued' : state
}

/** Unix seconds, as every time of the gateway's own. */
function seconds(milliseconds: number): number {
  return Math.floor(milliseconds / 1000)
}

/** `output` is the vendor's; undefined, and so absent in JSON, if the vendor did not answer. */
function videoReceipt(task: TaskRecord): Record<string, unknown> {
  const { details } = task
  return {
    task_id: task.id,
    id: task.id,
    object: 'video.generation',
    model: details.model,
    status: publicStatus(task.state),
    created_at: seconds(task.createdAtMs),
    request_id: details.requestId,
    output: details.output,
  }
}

/**
 * The record of a task: the vendor's `output` and `usage` unchanged, and, once it has ended, `content`, `usage` and `seed`,
 * or `error`.
 */
function videoRecord(task: TaskRecord): object {
  const { details, state } = task
  const record: Record<string, unknown> = { ...videoReceipt(task), updated_at: seconds(task.updatedAtMs) }
  if (details.usage !== undefined) record['usage'] = details.usage
  if (state === 'completed') {
    record['content'] = { video_url: details.contentUrl ?? null }
    record['usage'] = details.usage ?? null
    record['seed'] = details.facts['seed'] ?? null
  } else if (state === 'failed' || state === 'cancelled') {
    record['error'] = state === 'cancelled' ? null : (details.error ?? null)
  }
  if (details.cost !== undefined) record['cost'] = details.cost
  return record
}

/** Maximum seconds of any request: the gateway's own limit, for models without a range in the catalog. */
const MAX_VIDEO_SECONDS = 3600

/** Maximum length of an aspect ratio in characters, in any field. */
const MAX_ASPECT_RATIO_LENGTH = 20

const members = onDemand(() => z.record(z.string(), z.unknown()))

/** Types of the top-level fields of a video request. Unknown fields are passed on, and null fields count as absent. */
export const videoSchema = onDemand(() =>
  z.looseObject({
    model: z.string().min(1),
    duration: z.int().min(1).max(MAX_VIDEO_SECONDS).nullish(),
    resolution: z.string().min(1).max(20).nullish(),
    aspect_ratio: z.string().min(1).max(MAX_ASPECT_RATIO_LENGTH).nullish(),
    input: members(),
    parameters: members().nullish(),
    webhook_url: z.string().min(1).max(2048).nullish(),
  }),
)

/** A request that matches the schema, before defaults are filled in. */
type VideoBody = z.infer<ReturnType<typeof videoSchema>>

const DEFAULT_DURATION_SECONDS = 5
const DEFAULT_RESOLUTION = '720p'
const DEFAULT_ASPECT_RATIO = '16:9'

/**
 * Checks a video request: the top-level types, the form of all addresses, the fields that the model's protocol requires, the values
 * that the model renders, and that `parameters` agree with the billed fields. Returns a new request with defaults for the top-level
 * fields; `input` and `parameters` are the caller's own. For a model without a known protocol or abilities, the vendor checks the
 * rest.
 * @throws GatewayError `invalid_request` naming the field.
 */
export function parseVideoRequest(value: unknown, model: ModelFacts): VideoRequest {
  const body = checkRequest<VideoBody>(videoSchema(), value)
  const parts: VideoParts = { input: body.input, parameters: body.parameters ?? {} }
  const protocol = VIDEO_PROTOCOLS.get(model.protocol ?? '')
  mediaAddresses(body.input)
  if (protocol !== undefined) checkParts(parts, model, protocol)
  const billed = {
    duration: body.duration ?? DEFAULT_DURATION_SECONDS,
    resolution: body.resolution ?? defaultResolution(model),
  }
  checkRendering(billed, model, protocol?.holdsReferenceVideo(parts) === true)
  const knowsSizes = protocol !== undefined || model.video !== undefined
  // Unknown fields are kept and reported as dropped.
  const { parameters, webhook_url: webhookUrl, ...fields } = body
  const request: VideoRequest = {
    ...fields,
    ...billed,
    aspect_ratio: agreedAspectRatio(body, billed, knowsSizes),
    ...(isSet(parameters) ? { parameters } : {}),
    ...(isSet(webhookUrl) ? { webhook_url: webUrl(webhookUrl) } : {}),
  }
  // Rejects a ratio without a matching size before the hold.
  protocol?.fillIn(request, model)
  return request
}

function checkParts(parts: VideoParts, model: ModelFacts, protocol: VideoProtocol): void {
  const misplaced = protocol.misplacedField(parts, model)
  if (misplaced !== undefined) {
    throw videoFault(misplaced.param, `${model.id} is ${protocol.describedAs}: use ${misplaced.use}`)
  }
  protocol.check(parts, model)
}

function defaultResolution(model: ModelFacts): string {
  const offered = resolutionsOf(model.video)
  return offered.includes(DEFAULT_RESOLUTION) ? DEFAULT_RESOLUTION : (offered[0] ?? DEFAULT_RESOLUTION)
}

function webUrl(text: string): string {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) throw videoFault('webhook_url', 'must be an http(s) URL')
  return text
}

/**
 * Checks that the billed fields match the rendered ones: `parameters.duration`, `.resolution`, `.size` and `.ratio`, if
 * given, must equal the top-level fields. Returns the aspect ratio: the caller's, else that of `parameters`, else 16:9.
 * @throws GatewayError `invalid_request` naming both fields.
 */
function agreedAspectRatio(body: VideoBody, { duration, resolution }: BilledFields, knowsSizes: boolean): string {
  const parameters = body.parameters ?? {}
  checkDuration(parameters['duration'], { field: 'duration', value: duration, given: body.duration })
  const billedTier = { field: 'resolution', value: resolution, given: body.resolution }
  const tier = textOf('parameters.resolution', parameters['resolution'])
  if (tier !== undefined) agree('parameters.resolution', { value: tier.toLowerCase(), text: tier }, billedTier)
  const size = sizeOf(parameters['size'], knowsSizes)
  if (size !== undefined) {
    agree('parameters.size', { value: size.resolution, text: `${size.text} (${size.resolution})` }, billedTier)
  }
  const ratio = textOf('parameters.ratio', parameters['ratio'])
  if (ratio !== undefined && ratio.length > MAX_ASPECT_RATIO_LENGTH) {
    throw videoFault('parameters.ratio', `must have at most ${MAX_ASPECT_RATIO_LENGTH} characters`)
  }
  const aspectRatio = body.aspect_ratio ?? ratio ?? size?.aspectRatio ?? DEFAULT_ASPECT_RATIO
  const billedRatio = { field: 'aspect_ratio', value: aspectRatio, given: body.aspect_ratio }
  if (ratio !== undefined) agree('parameters.ratio', { value: ratio, text: ratio }, billedRatio)
  if (size !== undefined) {
    agree('parameters.size', { value: size.aspectRatio, text: `${size.text} (${size.aspectRatio})` }, billedRatio)
  }
  return aspectRatio
}

/** The fields by which a video is billed. */
interface BilledFields {
  readonly duration: number
  readonly resolution: string
}

/** A top-level field: its value, and what the caller wrote, if anything. */
interface BilledField {
  readonly field: string
  readonly value: string | number
  readonly given: unknown
}

function checkDuration(value: unknown, billed: BilledField): void {
  if (!isSet(value)) return
  if (!Number.isInteger(value)) throw videoFault('parameters.duration', 'must be an integer')
  agree('parameters.duration', { value, text: String(value) }, billed)
}

function agree(param: string, said: { readonly value: unknown; readonly text: string }, billed: BilledField): void {
  if (said.value === billed.value) return
  const { field, value, given } = billed
  const origin = isSet(given) ? '' : ' (the default)'
  throw videoFault(param, `${said.text} does not agree with ${field}: ${value}${origin}; both must say the same`)
}

function textOf(param: string, value: unknown): string | undefined {
  if (!isSet(value)) return undefined
  if (typeof value !== 'string') throw videoFault(param, 'must be a string')
  return value
}

function sizeOf(value: unknown, knowsSizes: boolean): (VideoGeometry & { text: string }) | undefined {
  const text = textOf('parameters.size', value)
  if (text === undefined) return undefined
  const geometry = readSize(text)
  if (geometry !== undefined) return { ...geometry, text }
  if (knowsSizes) throw videoFault('parameters.size', `${JSON.stringify(text)} is not the size of a known resolution`)
  return undefined
}

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
  texts: promptTexts({ kindOf: (name) => (/prompt$/.test(name) ? 'text' : undefined), last: ['input'] }),
  createOperation: ({ videos }, call) => videos && createVideoOperation(videos, call),
  task: videoTask,
})

function isSilent({ input, parameters }: VideoRequest): boolean {
  return parameters?.['audio'] === false && !isSet(input['audio_url'])
}

function textBytes(text: unknown): number {
  return typeof text === 'string' ? Buffer.byteLength(text) : 0
}

/** Addresses of the webhook and of media on the web. Inline images and files at the vendor have none. */
function callerUrls({ input, webhook_url }: VideoRequest): readonly CallerUrl[] {
  const media = mediaAddresses(input).filter(({ url }) => isWebUrl(url))
  return webhook_url === undefined ? media : [...media, { url: webhook_url, param: 'webhook_url', isCalledHere: true }]
}
