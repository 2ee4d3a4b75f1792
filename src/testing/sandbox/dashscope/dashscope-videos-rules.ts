import { asList, asObject, asText } from '../model/loose-json.ts'

/** Pixels of a video, and the words for them. */
export interface VideoSize {
  readonly width: number
  readonly height: number
  /** Lines by which the vendor bills: 480, 720, 1080. */
  readonly tier: number
  /** `16:9`. */
  readonly ratio: string
}

/** What one video model takes. */
export interface DashScopeVideoRules {
  /** The layout of the body: `legacy` is that of Wan 2.5 and 2.6, `new` that of 2.7. */
  readonly protocol: 'legacy' | 'new'
  /** What the video is made from: text, a picture, references. */
  readonly kind: 't2v' | 'i2v' | 'r2v'
  /** Seconds. */
  readonly durations: readonly number[]
  /** The same, when the request has a reference video. */
  readonly durationsWithVideo: readonly number[]
  readonly tiers: readonly number[]
  /** Characters of the prompt; the vendor cuts the rest off. */
  readonly promptLimit: number
  /** `shot_type` is read. */
  readonly takesShots: boolean
}

/** Proportions, in the order of the sizes below. */
export const VIDEO_RATIOS: readonly string[] = ['16:9', '9:16', '1:1', '4:3', '3:4']

/** By the lines of the tier (DashScope, Wan 2.6 API reference, `size`). */
const LEGACY_SIZES: ReadonlyMap<number, readonly string[]> = new Map([
  [480, ['832*480', '480*832', '624*624']],
  [720, ['1280*720', '720*1280', '960*960', '1088*832', '832*1088']],
  [1080, ['1920*1080', '1080*1920', '1440*1440', '1632*1248', '1248*1632']],
])
/** By the lines of the tier (DashScope, Wan 2.7 API reference, `ratio`). */
const NEW_SIZES: ReadonlyMap<number, readonly string[]> = new Map([
  [720, ['1280*720', '720*1280', '960*960', '1104*832', '832*1104']],
  [1080, ['1920*1080', '1080*1920', '1440*1440', '1648*1248', '1248*1648']],
])
const DEFAULT_TIER = 1080

const UP_TO_10 = wholeNumbers(2, 10)
const UP_TO_15 = wholeNumbers(2, 15)

const BASE_25 = { protocol: 'legacy', tiers: [480, 720, 1080], promptLimit: 1500, takesShots: false } as const
const BASE_26 = { protocol: 'legacy', tiers: [720, 1080], promptLimit: 1500, takesShots: true } as const
const BASE_27 = { protocol: 'new', tiers: [720, 1080], promptLimit: 5000, takesShots: false } as const

/** By the beginning of the model's name, because dated and regional ids follow the same rules. */
const RULES: readonly (readonly [name: string, rules: DashScopeVideoRules])[] = [
  ['wan2.5-t2v-preview', { ...BASE_25, kind: 't2v', durations: [5, 10], durationsWithVideo: [5, 10] }],
  ['wan2.5-i2v-preview', { ...BASE_25, kind: 'i2v', durations: [5, 10], durationsWithVideo: [5, 10] }],
  ['wan2.6-t2v', { ...BASE_26, kind: 't2v', durations: UP_TO_15, durationsWithVideo: UP_TO_15 }],
  ['wan2.6-i2v', { ...BASE_26, kind: 'i2v', durations: UP_TO_15, durationsWithVideo: UP_TO_15 }],
  ['wan2.6-r2v', { ...BASE_26, kind: 'r2v', durations: UP_TO_10, durationsWithVideo: UP_TO_10 }],
  ['wan2.7-t2v', { ...BASE_27, kind: 't2v', durations: UP_TO_15, durationsWithVideo: UP_TO_15 }],
  ['wan2.7-i2v', { ...BASE_27, kind: 'i2v', durations: UP_TO_15, durationsWithVideo: UP_TO_15 }],
  ['wan2.7-r2v', { ...BASE_27, kind: 'r2v', durations: UP_TO_15, durationsWithVideo: UP_TO_10 }],
]

/** The rules of a model (DashScope, Wan API references); undefined when there is no such model. */
export function videoRulesOf(model: string): DashScopeVideoRules | undefined {
  return RULES.find(([name]) => model === name || model.startsWith(`${name}-`))?.[1]
}

/**
 * The size in which a checked request is rendered; undefined when its field names none that the model has. Only the field that
 * the model reads counts: a Wan 2.6 model that makes videos from text renders 1080P, whatever `resolution` says. A video that
 * follows a given picture has the proportions 16:9 here, because no picture is fetched.
 */
export function videoSizeOf(body: unknown, rules: DashScopeVideoRules): VideoSize | undefined {
  const parameters = asObject(asObject(body)['parameters'])
  const sizes = rules.protocol === 'new' ? NEW_SIZES : LEGACY_SIZES
  if (rules.protocol === 'legacy' && rules.kind !== 'i2v') {
    const size = parameters['size'] ?? '1920*1080'
    for (const tier of rules.tiers) {
      const index = sizes.get(tier)?.indexOf(asText(size)) ?? -1
      if (index !== -1) return sizeAt(sizes, tier, index)
    }
    return undefined
  }
  const tier = rules.tiers.find((lines) => (parameters['resolution'] ?? `${DEFAULT_TIER}P`) === `${lines}P`)
  const index = followsPicture(body, rules) ? 0 : VIDEO_RATIOS.indexOf(asText(parameters['ratio'] ?? '16:9'))
  return tier === undefined || index === -1 ? undefined : sizeAt(sizes, tier, index)
}

/** True when the proportions come from a picture and `ratio` is not read. */
export function followsPicture(body: unknown, rules: DashScopeVideoRules): boolean {
  return rules.kind === 'i2v' || mediaTypesOf(body).includes('first_frame')
}

/** The types of `input.media`, in order; empty texts where there is none. */
export function mediaTypesOf(body: unknown): readonly string[] {
  return asList(asObject(asObject(body)['input'])['media']).map((item) => asText(asObject(item)['type']))
}

function sizeAt(sizes: ReadonlyMap<number, readonly string[]>, tier: number, index: number): VideoSize | undefined {
  const [width, height] = (sizes.get(tier)?.[index] ?? '').split('*').map(Number)
  return width === undefined || height === undefined
    ? undefined
    : { width, height, tier, ratio: VIDEO_RATIOS[index] ?? '' }
}

function wholeNumbers(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index)
}
