import type { ModelFacts, VideoAbilities } from '../../catalog/model-facts.ts'
import { type VideoParts, type VideoRequest, videoFault } from './video-request.ts'

/** An image or video whose subject appears in the video. */
export interface VideoReference {
  readonly kind: 'image' | 'video'
  readonly url: string
  /** URL of a recording of the subject's voice. */
  readonly voice?: string
}

/** A video to render, in a protocol-neutral layout. An absent field gets the vendor's default. */
export interface VideoIntent {
  /** Prompt. It names references `Image 1` or `Video 1`, numbered separately, in the order of `references`. */
  readonly prompt?: string
  readonly negativePrompt?: string
  /** URL of the image that the video begins with. */
  readonly firstFrame?: string
  /** URL of the image that the video ends with. */
  readonly lastFrame?: string
  /** URL of a video to continue. Its seconds are part of `seconds`. */
  readonly firstClip?: string
  readonly references?: readonly VideoReference[]
  /** URL of the soundtrack. */
  readonly audio?: string
  /** `480p`, `720p` or `1080p`. */
  readonly resolution: string
  /** Aspect ratio. Default `16:9`. A first frame or clip overrides it. */
  readonly aspectRatio?: string
  /** Duration in whole seconds. */
  readonly seconds: number
  readonly seed?: number
  readonly watermark?: boolean
  /** Whether the vendor may rewrite the prompt. */
  readonly promptExtend?: boolean
  /** `single` (default) or `multi`. */
  readonly shotType?: string
  /** Whether to render without sound. */
  readonly mute?: boolean
}

/** An intent written in a protocol. */
export interface WrittenIntent extends VideoParts {
  readonly parameters: Readonly<Record<string, unknown>>
  /** Fields of the intent that the protocol or the model cannot express, such as `references[1].voice`. */
  readonly impossible: readonly string[]
}

/** Name of a body layout, as in catalog rows. */
export type VideoProtocolName = 'wan-2-6' | 'wan-2-7'

/** Model facts that a protocol needs. Without `video`, the vendor checks fields that depend on it. */
export type VideoModelFacts = Pick<ModelFacts, 'id' | 'protocol' | 'video'>

/** A field that belongs to another protocol. */
export interface MisplacedField {
  /** `input.img_url`. */
  readonly param: string
  /** Path of the field in this protocol: `input.media`. */
  readonly use: string
}

/** One layout of `input` and `parameters` (API specification, "Video generation request"). All functions are pure. */
export interface VideoProtocol {
  readonly name: VideoProtocolName
  /** Name in error messages: `a 2.7 model`. */
  readonly describedAs: string
  /** Characters of a prompt that the vendor reads. It truncates longer prompts. */
  readonly maxPromptCharacters: number
  /** Returns the first field that only the other protocol has, if any. */
  misplacedField(parts: VideoParts, model: VideoModelFacts): MisplacedField | undefined
  /**
   * Checks the requirements of the model's kind.
   * @throws GatewayError `invalid_request` naming the field.
   */
  check(parts: VideoParts, model: VideoModelFacts): void
  /** Whether the references include a video, which shortens the longest video of a model. */
  holdsReferenceVideo(parts: VideoParts): boolean
  /**
   * Returns the caller's parameters, plus missing ones that decide the bill. Everything else stays unchanged and in order.
   * @throws GatewayError `invalid_request` naming `aspect_ratio` if the tier has no size of that ratio.
   */
  fillIn(request: VideoRequest, model: VideoModelFacts): Record<string, unknown>
  writeIntent(intent: VideoIntent, model: VideoModelFacts): WrittenIntent
}

/** Returns the parameters that are the same in every layout, unless the intent does not set them. */
export function writtenSettings({ promptExtend, watermark, seed }: VideoIntent): Record<string, unknown> {
  return {
    ...(promptExtend === undefined ? {} : { prompt_extend: promptExtend }),
    ...(watermark === undefined ? {} : { watermark }),
    ...(seed === undefined ? {} : { seed }),
  }
}

/** Returns the kind of model that an intent needs, for models without a kind in the catalog. */
export function taskOfIntent(intent: VideoIntent): VideoAbilities['task'] {
  if ((intent.references ?? []).length > 0) return 'r2v'
  const isFromPicture = intent.firstFrame ?? intent.lastFrame ?? intent.firstClip
  return isFromPicture === undefined ? 't2v' : 'i2v'
}

/** Tiers of the API specification, "Video generation request". */
const RESOLUTIONS: readonly string[] = ['480p', '720p', '1080p']

/** Returns the tiers that a model renders. Defaults to those of the specification. */
export function resolutionsOf(video: VideoAbilities | undefined): readonly string[] {
  return video?.resolutions ?? RESOLUTIONS
}

/**
 * Checks that a model renders the requested and billed values.
 * @throws GatewayError `invalid_request` naming `resolution` or `duration`.
 */
export function checkRendering(
  asked: { readonly resolution: string; readonly duration: number },
  model: VideoModelFacts,
  holdsReferenceVideo: boolean,
): void {
  const offered = resolutionsOf(model.video)
  if (!offered.includes(asked.resolution)) {
    throw videoFault('resolution', `${model.id} renders ${offered.join(' or ')}`)
  }
  const durations = durationsOf(model.video, holdsReferenceVideo)
  if (durations === undefined || isRendered(asked.duration, durations)) return
  const isShortened = holdsReferenceVideo && model.video?.durationsWithReferenceVideo !== undefined
  const occasion = isShortened ? ' with a reference video' : ''
  throw videoFault('duration', `${model.id} renders ${durationsText(durations)}${occasion}`)
}

type Durations = VideoAbilities['durations']

/** Returns the durations that a model renders, or `undefined` if the catalog has none. */
export function durationsOf(video: VideoAbilities | undefined, holdsReferenceVideo: boolean): Durations | undefined {
  return (holdsReferenceVideo ? video?.durationsWithReferenceVideo : undefined) ?? video?.durations
}

/** Whether a model renders a duration. */
export function isRendered(seconds: number, durations: Durations): boolean {
  return isList(durations) ? durations.includes(seconds) : seconds >= durations.min && seconds <= durations.max
}

/** Formats durations for messages: `2 to 15 seconds`, `5 or 10 seconds`. */
export function durationsText(durations: Durations): string {
  return isList(durations) ? `${durations.join(' or ')} seconds` : `${durations.min} to ${durations.max} seconds`
}

// `Array.isArray` does not narrow a readonly array.
function isList(durations: Durations): durations is readonly number[] {
  return Array.isArray(durations)
}

/** Tier and aspect ratio of a size in pixels. */
export interface VideoGeometry {
  /** The tier, as callers write it: `720p`. */
  readonly resolution: string
  /** `16:9`. */
  readonly aspectRatio: string
}

/** Values of `size` in DashScope's text-to-video and reference-to-video of Wan 2.5 and 2.6. */
const ASKED_SIZES: ReadonlyMap<string, VideoGeometry> = sizes([
  ['832*480', '480p', '16:9'],
  ['480*832', '480p', '9:16'],
  ['624*624', '480p', '1:1'],
  ['1280*720', '720p', '16:9'],
  ['720*1280', '720p', '9:16'],
  ['960*960', '720p', '1:1'],
  ['1088*832', '720p', '4:3'],
  ['832*1088', '720p', '3:4'],
  ['1920*1080', '1080p', '16:9'],
  ['1080*1920', '1080p', '9:16'],
  ['1440*1440', '1080p', '1:1'],
  ['1632*1248', '1080p', '4:3'],
  ['1248*1632', '1080p', '3:4'],
])

/** Sizes that appear only in reports: Wan 2.7 makes 4:3 a little wider. */
const RENDERED_SIZES: ReadonlyMap<string, VideoGeometry> = sizes([
  ['1104*832', '720p', '4:3'],
  ['832*1104', '720p', '3:4'],
  ['1648*1248', '1080p', '4:3'],
  ['1248*1648', '1080p', '3:4'],
])

/** Returns the `size` of a tier and a ratio, such as `1280*720`, if any. */
export function sizeFor(resolution: string, aspectRatio: string): string | undefined {
  for (const [size, row] of ASKED_SIZES)
    if (row.resolution === resolution && row.aspectRatio === aspectRatio) return size
  return undefined
}

/** Returns the ratios that a tier has a `size` for. */
export function ratiosOfTier(resolution: string): string[] {
  return [...ASKED_SIZES.values()].filter((row) => row.resolution === resolution).map((row) => row.aspectRatio)
}

/** Reads a `size` of a request, written with `*` or `x`. Returns `undefined` for unknown sizes. */
export function readSize(size: string): VideoGeometry | undefined {
  return ASKED_SIZES.get(withAsterisk(size))
}

/** Reads a size of a finished video, written with `*` or `x`. Returns `undefined` if it belongs to no tier. */
export function readRenderedSize(size: string): VideoGeometry | undefined {
  return readSize(size) ?? RENDERED_SIZES.get(withAsterisk(size))
}

function withAsterisk(size: string): string {
  const place = size.search(/[x×*]/i)
  return place === -1 ? size.trim() : `${size.slice(0, place).trim()}*${size.slice(place + 1).trim()}`
}

function sizes(rows: readonly (readonly [size: string, resolution: string, aspectRatio: string])[]) {
  return new Map(rows.map(([size, resolution, aspectRatio]) => [size, { resolution, aspectRatio }]))
}

/** Kinds of references by the ending of the file name. */
const KINDS: ReadonlyMap<string, VideoReference['kind']> = new Map([
  ...['mp4', 'mov'].map((ending) => [ending, 'video'] as const),
  ...['jpg', 'jpeg', 'png', 'bmp', 'webp'].map((ending) => [ending, 'image'] as const),
])

/** Returns the kind of a reference by its file name, or `undefined` if the ending is unknown. */
export function referenceKind(url: string): VideoReference['kind'] | undefined {
  const path = URL.canParse(url) ? new URL(url).pathname : url
  return KINDS.get(path.slice(path.lastIndexOf('.') + 1).toLowerCase())
}

/** Names of references in a 2.6 prompt, in the order of the list. */
const NUMBERED = /\bcharacter([1-9]\d*)\b/gi

/** Names of references in a 2.7 prompt, with images and videos numbered separately. */
const REFERENCE_NAMES = /\b(image|video)\s?([1-9]\d*)\b|(图|视频)([1-9]\d*)(?!\w)/gi

const VIDEO_WORDS: ReadonlySet<string> = new Set(['video', '视频'])

type Kinds = readonly Pick<VideoReference, 'kind'>[]

/** `character2` → `Image 1`. Numbers without a reference stay unchanged. */
export function numberedToKinds(prompt: string, references: Kinds): string {
  return prompt.replace(NUMBERED, (mention, number: string) => nameByKind(references, Number(number)) ?? mention)
}

/** `Image 1` → `character2`. Numbers without a reference stay unchanged. */
export function kindsToNumbered(prompt: string, references: Kinds): string {
  return prompt.replace(REFERENCE_NAMES, (mention, ...groups: (string | number | undefined)[]) => {
    const position = positionOf(references, groups)
    if (position === undefined) return mention
    // Latin words need a space before them, Chinese words do not.
    const before = prompt[Number(groups[4]) - 1] ?? ''
    return `${/\w/.test(before) ? ' ' : ''}character${position}`
  })
}

/** Whether a text names one of the references in 2.6 form. */
export function namesNumbered(prompt: string, references: Kinds): boolean {
  return [...prompt.matchAll(NUMBERED)].some((match) => Number(match[1]) <= references.length)
}

/** Whether a text names one of the references in 2.7 form. */
export function namesByKind(prompt: string, references: Kinds): boolean {
  return [...prompt.matchAll(REFERENCE_NAMES)].some((match) => positionOf(references, match.slice(1)) !== undefined)
}

/** Returns the position (from 1) in the whole list of a reference named by kind, if any. */
function positionOf(references: Kinds, groups: readonly unknown[]): number | undefined {
  const [latinWord, latinNumber, chineseWord, chineseNumber] = groups
  const isVideo = VIDEO_WORDS.has(String(latinWord ?? chineseWord).toLowerCase())
  let left = Number(latinNumber ?? chineseNumber)
  for (const [index, { kind }] of references.entries()) {
    if ((kind === 'video') === isVideo) left -= 1
    if (left === 0) return index + 1
  }
  return undefined
}

function nameByKind(references: Kinds, position: number): string | undefined {
  const reference = references[position - 1]
  if (reference === undefined) return undefined
  const count = references.slice(0, position).filter(({ kind }) => kind === reference.kind).length
  return `${reference.kind === 'video' ? 'Video' : 'Image'} ${count}`
}
