import * as bare from '../proxies/bare.mjs'
import * as gateway from '../proxies/gateway.mjs'
import * as express from '../proxies/mounts/express.mjs'
import * as expressFast from '../proxies/mounts/express-fast.mjs'
import * as fastify from '../proxies/mounts/fastify.mjs'
import { scenario as chatBurst } from '../scenarios/chat-burst.mjs'
import { scenario as chatJson } from '../scenarios/chat-json.mjs'
import { verdict } from '../verdict.mjs'

const nodeMount = { ...gateway, title: 'Node handler' }
const PROXIES = [bare, nodeMount, fastify, expressFast, express]

/** Maximum CPU time of a mount, relative to the Node handler. */
const TARGETS = new Map([
  [fastify.name, 1.1],
  [expressFast.name, 1.1],
  [express.name, 2.2],
])

export const suite = {
  name: 'mounts',
  heading: 'Mounts',
  intro: `The same gateway, everything on, mounted in the ways that \`docs/mounting.md\` shows. Targets are against the Node handler.`,
  scenarios: [chatJson, chatBurst],
  proxiesOf: () => PROXIES,
  referencesOf: () => [
    { name: bare.name, column: 'against the floor' },
    { name: nodeMount.name, column: 'against the Node handler' },
  ],
  verdictOf: (_scenario, { proxy, comparisons }) => {
    const target = TARGETS.get(proxy)
    return target === undefined ? '' : verdict(comparisons[nodeMount.name].median, { target, sign: '×' })
  },
}
