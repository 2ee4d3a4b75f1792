/**
 * What may have a price. Tokens of a kind with a price of its own are charged at it and not again as part of their total;
 * a kind without one is charged as part of its total. `request` counts one a call.
 */
export const METERS = [
  'input_token',
  'output_token',
  'cached_input_token',
  'cache_write_token',
  'cache_write_1h_token',
  'reasoning_token',
  'image',
  'input_image_token',
  'output_image_token',
  'video_second',
  'character',
  'web_search',
  'request',
] as const

/** One thing that may have a price. */
export type Meter = (typeof METERS)[number]
