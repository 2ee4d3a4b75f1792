import { z } from 'zod'

/**
 * Most seconds that any request may ask for; the gateway's own bound for models whose range the catalog does not know.
 */
export const MAX_VIDEO_SECONDS = 3600

/** Longest aspect ratio, in characters, wherever it stands. */
export const MAX_ASPECT_RATIO_LENGTH = 20

const members = z.record(z.string(), z.unknown())

/** Types of the top-level fields of a video request; unknown fields pass, and null stands for an absent field. */
export const videoSchema = z.looseObject({
  model: z.string().min(1),
  duration: z.int().min(1).max(MAX_VIDEO_SECONDS).nullish(),
  resolution: z.string().min(1).max(20).nullish(),
  aspect_ratio: z.string().min(1).max(MAX_ASPECT_RATIO_LENGTH).nullish(),
  input: members,
  parameters: members.nullish(),
  webhook_url: z.string().min(1).max(2048).nullish(),
})

/** A request that {@link videoSchema} has passed, before defaults are filled in. */
export interface VideoBody {
  readonly model: string
  readonly duration?: number | null
  readonly resolution?: string | null
  readonly aspect_ratio?: string | null
  readonly input: Readonly<Record<string, unknown>>
  readonly parameters?: Readonly<Record<string, unknown>> | null
  readonly webhook_url?: string | null
}
