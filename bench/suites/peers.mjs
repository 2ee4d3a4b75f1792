import { installPeers } from '../peer-packages.mjs'
import * as bare from '../proxies/bare.mjs'
import * as gateway from '../proxies/gateway.mjs'
import * as fastifyHttpProxy from '../proxies/peers/fastify-http-proxy.mjs'
import * as litellm from '../proxies/peers/litellm.mjs'
import * as nginx from '../proxies/peers/nginx.mjs'
import * as portkey from '../proxies/peers/portkey.mjs'
import { scenario as chatBurst } from '../scenarios/chat-burst.mjs'
import { scenario as chatJson } from '../scenarios/chat-json.mjs'
import { scenario as chatPaced } from '../scenarios/chat-paced.mjs'
import { scenario as edits } from '../scenarios/edits.mjs'
import { scenario as embeddings } from '../scenarios/embeddings.mjs'
import { scenario as firstByte } from '../scenarios/first-byte.mjs'
import { scenario as openStreams } from '../scenarios/open-streams.mjs'

const PROXIES = [bare, gateway, nginx, fastifyHttpProxy, portkey, litellm]

export const suite = {
  name: 'peers',
  heading: 'Against other proxies and gateways',
  intro: `The same mock vendor, driver, turns and checks as above. nginx and \`@fastify/http-proxy\` pass bytes through and know nothing of
keys, limits, money or models. Portkey's gateway forwards to the vendor that the caller's headers name, here without keys, limits
or money. signalbox has everything on. Each runs with one worker, alone on its core. CPU is user and system time of all its
processes, of nginx and LiteLLM in steps of 10 ms. Memory is the growth of resident memory, in Node after a collection. "Against
signalbox" is again the median of the comparisons within each round: below 1 × is less than signalbox.`,
  scenarios: [chatJson, chatPaced, chatBurst, embeddings, edits, firstByte, { ...openStreams, comparison: 'ratio' }],
  proxiesOf: () => PROXIES,
  referencesOf: () => [
    { name: bare.name, column: 'against the floor' },
    { name: gateway.name, column: 'against signalbox' },
  ],
  prepare: installPeers,
}
