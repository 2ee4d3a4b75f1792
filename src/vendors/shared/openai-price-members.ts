import type { PriceMember, PriceMembers } from '../../endpoints/price-members.ts'

/** Places of tools in a request: its own, those in namespaces, and those that items of the input bring. */
const TOOLS = ['tools[]', 'tools[].tools[]', 'input[].tools[]', 'input[].tools[].tools[]'] as const

/** A container costs by its memory, from $0.03 for `1g` to $1.92 for `64g` (OpenAI, "Pricing", built-in tools, November 2026). */
const CONTAINERS = TOOLS.flatMap((tools) =>
  ['container', 'environment'].map((holder): PriceMember => {
    return { path: `${tools}.${holder}.memory_limit`, field: 'container_memory', ordinary: ['1g'] }
  }),
)

/**
 * Images that a model plans, animates or writes as SVG need more computation than one image of their size and quality (OpenAI API,
 * "Create image": `complexity`, `frame_count`, `svg`).
 */
const IMAGES: readonly PriceMember[] = [
  { path: 'complexity', field: 'complexity' },
  { path: 'output_format', field: 'output_format', ordinary: ['png', 'jpeg', 'webp'] },
  { path: 'frame_count', field: 'frame_count' },
  { path: 'svg', field: 'svg' },
]

/** The image tool has the members of the images endpoints, and `svg` may name another model that writes the image. */
const IMAGE_TOOLS = TOOLS.flatMap((tools) =>
  IMAGES.map((member): PriceMember => ({ ...member, path: `${tools}.${member.path}` })),
)

/** Price members of servers with OpenAI's API. The price fields of the endpoints have the others: service tiers, searches, tools, size, quality. */
export const OPENAI_PRICE_MEMBERS: PriceMembers = {
  responses: [...CONTAINERS, ...IMAGE_TOOLS],
  images: IMAGES,
  image_edits: IMAGES,
}
