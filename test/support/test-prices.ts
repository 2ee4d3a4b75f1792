import { DASHSCOPE_VIDEO_MODELS } from '../../src/catalog/models/dashscope-models.ts'
import type { PriceFile } from '../../src/catalog/prices/prices.ts'

/** Prices that tests calculate with; round numbers of our own, no vendor's. */
export const testPrices: PriceFile = {
  currency: 'USD',
  prices: [
    ...chat('chat-relayed', '1.00', '4.00'),
    ...chat('chat-pro', '1.00', '4.00'),
    ...chat('chat-qwen', '0.50', '2.00'),
    ...chat('cl-sonnet-4-6', '3.00', '15.00'),
    ...chat('cl-opus-4-7', '5.00', '25.00'),
    ...chat('gmn-2.5-pro', '1.25', '10.00'),
    ...chat('gmn-2.5-flash', '0.30', '2.50'),
    ...[
      'embedding-relayed',
      'text-embedding-v4',
      'text-embedding-004',
      'gmn-embedding-001',
      'gmn-embedding-2-preview',
      'vy-4-large',
      'vy-4',
      'vy-4-lite',
      'vy-rerank-2.5',
      'qw3-rerank',
      'gte-rerank-v2',
      'qw3-vl-rerank',
    ].map((model) => ({ model, meter: 'input_token' as const, amount: '0.02', per: 1_000_000 })),
    { model: 'qw3-vl-rerank', meter: 'input_image_token', amount: '0.05', per: 1_000_000 },
    { model: 'rerank-v3.5', meter: 'search_unit', amount: '0.002' },
    ...[
      'qw-image-2.0',
      'qw-image-2.0-pro',
      'qw-image-max',
      'qw-image-edit',
      'qw-image-edit-plus',
      'qw-image-edit-max',
    ].map((model) => ({ model, meter: 'image' as const, amount: '0.05' })),
    { model: 'qw-image-2.0', meter: 'image', amount: '0.08', when: { size: '1664*928' } },
    ...['gmn-3.1-flash-image-preview', 'gmn-3-pro-image-preview', 'gmn-2.5-flash-image'].flatMap(imageTokens),
    ...['gp-image-2', 'gp-image-1'].flatMap(imageTokens),
    { model: 'de-2', meter: 'image', amount: '0.016', when: { size: '256x256' } },
    { model: 'de-2', meter: 'image', amount: '0.018', when: { size: '512x512' } },
    { model: 'de-2', meter: 'image', amount: '0.02', when: { size: '1024x1024' } },
    ...DASHSCOPE_VIDEO_MODELS.flatMap(({ id, video }) =>
      Object.entries({ '480p': '0.05', '720p': '0.10', '1080p': '0.15' })
        .filter(([resolution]) => video?.resolutions.includes(resolution))
        .map(([resolution, amount]) => ({ model: id, meter: 'video_second' as const, amount, when: { resolution } })),
    ),
  ],
}

function imageTokens(model: string): PriceFile['prices'][number][] {
  return [
    { model, meter: 'input_token', amount: '5.00', per: 1_000_000 },
    { model, meter: 'input_image_token', amount: '8.00', per: 1_000_000 },
    { model, meter: 'output_token', amount: '10.00', per: 1_000_000 },
    { model, meter: 'output_image_token', amount: '30.00', per: 1_000_000 },
  ]
}

function chat(model: string, input: string, output: string): PriceFile['prices'][number][] {
  return [
    { model, meter: 'input_token', amount: input, per: 1_000_000 },
    { model, meter: 'output_token', amount: output, per: 1_000_000 },
    { model, meter: 'cached_input_token', amount: (Number(input) / 10).toFixed(3), per: 1_000_000 },
  ]
}
