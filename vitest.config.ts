import { configDefaults, defineConfig } from 'vitest/config'
import { consolePageDefines } from './console-page.config.ts'

/**
 * Test files that get modules of their own, because they replace some. The others of a worker share theirs: most of the time
 * of a run would go into importing the same modules.
 */
export const ALONE = ['test/cli/serve-without-engine.test.ts', 'test/tasks/webhook-egress.test.ts']

/** Test files that replace the global `fetch`: they share their modules with each other only. */
export const REPLACED_FETCH = [
  'test/client/against-gateway.test.ts',
  'test/client/errors.test.ts',
  'test/client/requests.test.ts',
  'test/client/responses.test.ts',
  'test/client/retries.test.ts',
  'test/client/streams.test.ts',
  'test/client/videos.test.ts',
]

/** Tests of what is built and packed, and of the types under each compiler. */
const PACKAGE = [
  'test/package/**/*.test.ts',
  'test/cli/main.test.ts',
  'test/cli/one-key.test.ts',
  'test/client/bundle.test.ts',
  'test/types/compilers.test.ts',
]

/** Tests of the pages, of the site and of the examples, which import the built package as a reader does. */
const DOCS = ['test/docs/**/*.test.ts', 'test/examples/**/*.test.ts', 'test/mcp/example.test.ts']

/** Tests with programs of others: PostgreSQL, PgBouncer, Redis, nginx, Chromium, sox, and frameworks that take seconds to load. */
const SERVERS = [
  'test/drills/postgres/**/*.test.ts',
  'test/cli/real-servers.test.ts',
  'test/client/browser.test.ts',
  'test/clients/langchain-responses.test.ts',
  'test/clients/llamaindex.test.ts',
  'test/clients/openai-agents.test.ts',
  'test/console/browser.test.ts',
  'test/clients/played-speech.test.ts',
  'test/gateway/shared-limits.test.ts',
  'test/metrics/promtool.test.ts',
  'test/stores/postgres/migrate.test.ts',
  'test/stores/postgres/postgres-agreeing-books.test.ts',
  'test/stores/postgres/postgres-books.test.ts',
  'test/stores/postgres/postgres-failover.test.ts',
  'test/stores/postgres/postgres-faults.test.ts',
  'test/stores/postgres/postgres-ledger.test.ts',
  'test/stores/postgres/postgres-model.test.ts',
  'test/stores/postgres/postgres-pgbouncer.test.ts',
  'test/stores/postgres/postgres-plans.test.ts',
  'test/stores/postgres/postgres-processes.test.ts',
  'test/stores/postgres/postgres-restart.test.ts',
  'test/stores/postgres/postgres-store.test.ts',
  'test/stores/postgres/postgres-tasks.test.ts',
  'test/stores/redis/redis-cache.test.ts',
  'test/stores/redis/redis-failover.test.ts',
  'test/stores/redis/redis-limits.test.ts',
  'test/stores/redis/redis-outage.test.ts',
  'test/stores/redis/redis-processes.test.ts',
  'test/support/real-servers.test.ts',
]

/**
 * Tests that take more than a second or two: in processes of their own, with hundreds of calls, or with random input. `npm test` stays short
 * without them. `DRILL=long` makes some longer still.
 */
const DRILLS = [
  'test/adapters/every-adapter.test.ts',
  'test/admin/access.test.ts',
  'test/admin/routes.test.ts',
  'test/cli/account-books-command.test.ts',
  'test/cli/accounts-command.test.ts',
  'test/cli/check-command.test.ts',
  'test/cli/keys-command.test.ts',
  'test/cli/serve-console.test.ts',
  'test/cli/serve.test.ts',
  'test/cli/usage-command.test.ts',
  'test/cli/webhooks-command.test.ts',
  'test/client/batches.test.ts',
  'test/clients/every-adapter.test.ts',
  'test/clients/openai-conversations.test.ts',
  'test/clients/openai-errors.test.ts',
  'test/clients/vercel-ai-responses.test.ts',
  'test/credentials/expiring-tokens.test.ts',
  'test/drills/batch-kills.test.ts',
  'test/drills/dead-vendor.test.ts',
  'test/drills/disconnect-policy.test.ts',
  'test/drills/every-stage.test.ts',
  'test/drills/idempotent-posts.test.ts',
  'test/drills/image-failures.test.ts',
  'test/drills/image-idempotency.test.ts',
  'test/drills/kill-streams.test.ts',
  'test/drills/loss-table.test.ts',
  'test/drills/mixed-faults-single.test.ts',
  'test/drills/mixed-faults.test.ts',
  'test/drills/money-for-137.test.ts',
  'test/drills/native-batch-kills.test.ts',
  'test/drills/native-batch-memory.test.ts',
  'test/drills/responses-bodies.test.ts',
  'test/drills/responses-kills.test.ts',
  'test/drills/slow-callers.test.ts',
  'test/drills/video-kills.test.ts',
  'test/drills/video-poll-budget.test.ts',
  'test/drills/video-races.test.ts',
  'test/drills/video-restart.test.ts',
  'test/endpoints/fuzz-lists.test.ts',
  'test/endpoints/fuzz-parse.test.ts',
  'test/endpoints/schema-acceptance.test.ts',
  'test/gateway/agreeing-books.test.ts',
  'test/gateway/arrears.test.ts',
  'test/gateway/background-money.test.ts',
  'test/gateway/background-responses.test.ts',
  'test/gateway/batches.test.ts',
  'test/gateway/cached-hooks.test.ts',
  'test/gateway/cached-streams.test.ts',
  'test/gateway/conversations.test.ts',
  'test/gateway/disconnects.test.ts',
  'test/gateway/embeddings.test.ts',
  'test/gateway/freed-memory.test.ts',
  'test/gateway/fuzz-bodies.test.ts',
  'test/gateway/fuzz-forms.test.ts',
  'test/gateway/fuzz-large.test.ts',
  'test/gateway/hook-charges-later.test.ts',
  'test/gateway/image-hostile.test.ts',
  'test/gateway/image-large.test.ts',
  'test/gateway/image-refusals.test.ts',
  'test/gateway/json-retry.test.ts',
  'test/gateway/left-whole-answers.test.ts',
  'test/gateway/management-errors.test.ts',
  'test/gateway/media-estimate.test.ts',
  'test/gateway/message-batches.test.ts',
  'test/gateway/overload.test.ts',
  'test/gateway/preset-responses.test.ts',
  'test/gateway/private-urls.test.ts',
  'test/gateway/random-failures.test.ts',
  'test/gateway/rerank.test.ts',
  'test/gateway/response-cache.test.ts',
  'test/gateway/responses-billing.test.ts',
  'test/gateway/responses-state.test.ts',
  'test/gateway/routing-hedge.test.ts',
  'test/gateway/security.test.ts',
  'test/gateway/speech-errors.test.ts',
  'test/gateway/speech-failures.test.ts',
  'test/gateway/speech.test.ts',
  'test/gateway/stream-failures.test.ts',
  'test/gateway/text-hooks.test.ts',
  'test/gateway/transcription-billing.test.ts',
  'test/gateway/transcription-stages.test.ts',
  'test/gateway/transcriptions.test.ts',
  'test/gateway/unbilled-usage.test.ts',
  'test/hooks/quiet-streams.test.ts',
  'test/mcp/conformance/conformance.test.ts',
  'test/mcp/isolation.test.ts',
  'test/mcp/leaving.test.ts',
  'test/mcp/mounts.test.ts',
  'test/mcp/video-tools.test.ts',
  'test/otel/metrics.test.ts',
  'test/pipeline/cache-key.test.ts',
  'test/pipeline/settlement-given-up.test.ts',
  'test/stores/memory/memory-responses.test.ts',
  'test/stores/sqlite/sqlite-books.test.ts',
  'test/stores/sqlite/sqlite-holds.test.ts',
  'test/stores/sqlite/sqlite-processes.test.ts',
  'test/stores/sqlite/sqlite-store.test.ts',
  'test/tasks/content-downloads.test.ts',
  'test/tasks/following-tasks.test.ts',
  'test/tasks/native-batch-vendors.test.ts',
  'test/tasks/native-batches.test.ts',
  'test/tasks/split-list.test.ts',
  'test/tasks/webhook-deliverer.test.ts',
  'test/testing/sandbox/bare-script.test.ts',
  'test/testing/sandbox/scripted-replies.test.ts',
  'test/testing/sandbox/vertex-failures.test.ts',
  'test/transport/undici-connections.test.ts',
  'test/transport/undici-pieces.test.ts',
  'test/transport/undici-timeouts.test.ts',
  'test/transport/undici.test.ts',
  'test/types/drift.test.ts',
  'test/vendors/held-bytes.test.ts',
  'test/vendors/shared/chat-chunk-scan.test.ts',
  'test/wire/audio/audio-header.test.ts',
  'test/wire/json-cursor.test.ts',
  'test/wire/read-form.test.ts',
]

/** Bounds of memory, counted in a process of the file's own, so that neighbours do not change them. */
const MEMORY = [
  'bench/checks/batch-memory.check.ts',
  'bench/checks/idle-heap.check.ts',
  'bench/checks/limiter-memory.check.ts',
  'bench/checks/open-stream-memory.check.ts',
  'bench/checks/request-allocations.check.ts',
  'bench/checks/survivors.check.ts',
]

/** The files of each project. A test file is in exactly one (`test/architecture/projects.test.ts`). */
export const PROJECTS = [
  // Neither a build nor a server is needed for these three, which are `npm test`.
  {
    name: 'source',
    include: ['test/**/*.test.ts'],
    exclude: [...configDefaults.exclude, ...ALONE, ...REPLACED_FETCH, ...PACKAGE, ...DOCS, ...SERVERS, ...DRILLS],
    isolate: false,
  },
  { name: 'alone', include: ALONE },
  { name: 'fetch', include: REPLACED_FETCH, isolate: false },
  // Packs what has been built, once, and only when these tests run.
  { name: 'package', include: PACKAGE, isolate: false, globalSetup: 'test/package/packed.setup.ts' },
  { name: 'docs', include: DOCS, isolate: false, globalSetup: 'test/support/real-servers.setup.ts' },
  // Lends servers to the tests that ask for one; starts nothing by itself.
  { name: 'servers', include: SERVERS, isolate: false, globalSetup: 'test/support/real-servers.setup.ts' },
  { name: 'drills', include: DRILLS, isolate: false },
  { name: 'memory', include: MEMORY, testTimeout: 120_000 },
  // Upper bounds of time, measured without neighbours. Whatever else the machine does only adds to a figure, so one of three
  // measurements must keep it.
  {
    name: 'checks',
    include: ['bench/checks/**/*.check.ts'],
    exclude: [...configDefaults.exclude, ...MEMORY],
    fileParallelism: false,
    testTimeout: 120_000,
    retry: 2,
  },
]

const page = consolePageDefines()

export default defineConfig({
  define: page,
  plugins: [
    {
      // Vitest keeps what it has compiled, for the next run. Its key is the text of a file, which does not tell what is put in the place
      // of these names.
      name: 'compile-page-anew',
      configureVitest({ experimental_defineCacheKeyGenerator: defineKey }) {
        defineKey(({ sourceCode }) => (Object.keys(page).some((name) => sourceCode.includes(name)) ? false : undefined))
      },
    },
  ],
  test: {
    // They end what hangs. A test that measures a time has its own bound.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Two cores: more workers only take turns, and timing-sensitive socket tests suffer from it.
    maxWorkers: 2,
    experimental: { fsModuleCache: true },
    projects: PROJECTS.map((test) => ({ extends: true as const, test })),
  },
})
