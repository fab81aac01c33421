//! The hidden items that the binary, the Python module and the experiments use beside the
//! interface.

pub mod build {
    #[cfg(feature = "gpu")]
    pub use crate::build::devices::usable_gpus;
    pub use crate::build::{
        handed::{HandedIndexer, HandedIndexers},
        memory::peak_resident,
        note::Notes,
        options::{BuildProgress, OnProgress, Peers, Pipeline},
        prepare::accept_folder,
        rates::MeasuredRates,
        report::{IndexerReport, TokensTaken},
        run::PreparedBuild,
    };
}

pub mod cluster {
    pub use crate::cluster::{
        control_lines::PeerOutcome, hosts::Hosts, wire::SealedLine, wire::Secret,
    };
}

pub mod codec {
    pub use crate::codec::{
        bp128,
        column::{Codec, CodedBlock, List, OpenedColumn},
        error::CodecError,
        named::ListCodec,
        pfor::{Pfor, nested::MAX_LEVELS},
    };
}

pub mod dataflow {
    #[cfg(feature = "gpu")]
    pub use crate::dataflow::query::answered_by::{AnsweredBy, ProcessorShares};
    pub use crate::dataflow::{
        control::{OperatorShare, OperatorTime},
        query::{
            context::Hooks,
            follower::{Followed, Follower, Mover},
            shards::follow::{Following, TogetherMover},
            waiter::{Outcome, Waiter},
        },
        timeline::{Busy, ProgressLog},
        together::{Cluster, Meeting, SharedSetting, outcome_of},
        workers::{self, keep_panic_messages},
    };
}

pub mod dictionary {
    pub use crate::dictionary::{
        closed::{ClosedError, ClosedShare, ClosedTerms},
        device::texts::{PieceText, TextGatherer},
        group::TermGroup,
        owners::Owners,
        parsed::Regroup,
        run::{RunDictionary, SortedRun},
        tally::Tally,
    };
}

pub mod evaluate {
    pub use crate::evaluate::{
        fuse::{Method, check_weights, fuse, write_run},
        run::read_runs,
        table::{differences, means, queries},
        written::Written,
    };
}

pub mod fault {
    pub use crate::fault::report;
}

pub mod gpu {
    #[cfg(feature = "gpu")]
    pub use crate::gpu::{
        floor::{
            cache::ModuleCache,
            device::Device,
            discover::DeviceInfo,
            error::{Geometry, GpuError},
            inventory::Inventory,
            modules::Toolchain,
            steps::{Argument, Step},
        },
        invert::{
            cuda::CudaMachine,
            inverter::{Inverter, InverterHooks},
            text::MOST_PIECES,
        },
        query::{
            batch::{BatchAnswer, BatchQuery, QueryBatch, QueryBatchRoom},
            bring::{Bringer, BroughtList, ListRequest},
            choose::{ChosenMethod, Devices},
            device::{BatchSlot, QueryDevice},
            engine::{GpuEngines, layout_of},
            given::GivenDevices,
            list::{Layout, PlacedList},
            method::{HandedMethod, HandedMethods},
            plan::PlacedTerm,
            residency::FreeRanges,
            service::{Counts, OnLost},
            worth::CpuWork,
        },
    };
    pub use crate::settings::Gpus;
}

pub mod index {
    pub use crate::index::{
        cache_plan::{CachePlan, CachePolicy, CachedLists, PlanOf},
        ciff::{self, import::Import},
        columns::{ColumnKind, ColumnValue},
        documents::duplicates::SameName,
        files::storage::{Stop, filled::FilledFile},
        format::{generation_name, generation_number},
        generations::{
            draft::{Description, Draft},
            folder::{IndexLock, current},
            held::release,
            keep::{RolledBack, rollback},
            manifest::{Manifest, Settings},
            merged::{Merged, Recode, merge_index},
            watch::Watch,
        },
        inspect::{
            browse::TermLists,
            check::{self, check_watched},
            contents::Contents,
            dump::{documents, terms},
            find::{DocumentKey, DocumentRow, find_document, find_in},
            totals::{Totals, totals},
            vector::DocumentVector,
        },
        lexicon::{TermEntry, stream::LexiconStream},
        list::{ListView, encode::ListEncoder, error::ListError, form::Form},
        order::DocumentOrder,
        ranks::RanksFile,
        run::{
            lay::{LaidChunk, RunPart},
            read::Run,
        },
        scores::ranks_of,
    };
}

pub mod input {
    pub use crate::input::{
        COMPRESSED, Compression, Format, Unknown,
        cutter::Cutter,
        document::{self, Document, DocumentSink, Name, PieceView, Skip},
        error::InputError,
        formats::{
            fields::{Fields, NAMES},
            jsonl::JsonlParser,
            lines::{Between, LinesParser},
            noticed::{SeenFields, remarks},
            warc::WarcParser,
        },
        hash::InputHash,
        piece::Piece,
        sample::SAMPLE_BYTES,
        splits::STDIN,
        streams::{
            decoder::{Decoder, Output},
            encoded::TextEncoding,
            unpacked::{Unpacked, plain_file, text_of_file, whole_text},
        },
    };
}

#[cfg(feature = "program")]
pub mod log {
    pub use crate::log::{IS_JSON, json, start};
}

pub mod order {
    pub use crate::order::{MAX_DOCUMENT_BYTES, PIECE_BYTES, budget::Budget};
}

#[cfg(feature = "papers")]
pub mod papers {
    #[cfg(feature = "rebuild")]
    pub use crate::papers::REBUILD;
    #[cfg(feature = "gpu")]
    pub use crate::papers::ding09::{
        features::{Cost, CostModel, Costs, Features},
        hybrid::{Hybrid, OnSlow, Scheduling},
        machine::Hardware,
        measure::costs,
        model_tree::ModelTree,
        models::{Models, Predict},
        policy::{Policy, PolicyChoice, Processor, Schedule},
        simulate::{Arrival, choose, latencies},
    };
    pub use crate::papers::wei11::{
        Wei11,
        btree::run::BTreeRun,
        indexer::{ParsedBlock, TokenIndexer},
        regroup::TokenTally,
    };
    pub use crate::papers::{
        ALGORITHMS, INDEXERS, MODELS,
        wang::{demand::Demand, rounds::WANG, visits::Visitor},
    };
    #[cfg(feature = "gpu")]
    pub use crate::papers::{
        METHODS,
        ding09::gpu::{
            DingTuning, MOST_MERGE_LEVELS,
            batch::TILE,
            steps::{Decoded, decoding},
        },
        huang::gpu::{
            BATCH, DEFAULT_THREADS, HuangTuning, THREADS, Traversal, batch::huang_shared_bytes,
            list::BLOCK,
        },
        methods::{
            DeviceMethod, MethodArray,
            batch::{AskedPart, BatchRoom, FoundHits, MethodBatch},
            check_lists,
            device::{MethodDevice, MethodMemory},
            given::{self, GivenMethods},
            lists::{DevicePart, longest},
        },
        wang::gpu::{Cached, DEFAULT_ROUND, ROUNDS, WangTuning, batch::wang_shared_bytes, of_plan},
    };
}

pub mod query {
    pub use crate::query::{
        algorithms::{
            and, exhaustive,
            handed::{HandedAlgorithms, RunSearcher, SearchAlgorithm},
            max_score,
        },
        answers::{
            latencies::Latencies,
            output::{AnswerForm, RunTag},
            returned::{ReturnedValues, check_returned},
            snippet::{Snippet, Snippets, snippet},
            talk::{COLUMNS, Talk},
            texts::{Reread, record_of},
        },
        candidates::CandidatesByQuery,
        cursor::RunTerm,
        engines::many::{ask_many, rank_many},
        engines::{
            engine::{
                Engines, HandedModel, HandedModels, Model, Wakers,
                renewed::{RenewedEngines, Renewer},
                whole::WholeEngines,
            },
            shard::Shard,
            spreading::{self, patience},
        },
        expanding::{Expanded, ReadQuery},
        filter::{check as check_filter, column_of},
        listing::{FacetBy, SortBy, facets::FoundFacets, sort_column},
        norms::Norms,
        plan::{Plan, Planner},
        reading::{
            asked::GivenDocids,
            docids::Docids,
            forms::{QueryForm, QueryReading},
            objects,
            refusals::{Refusals, Refused},
        },
        rm3::{Expander, Rm3, expanded},
        scratch::Scratch,
        searcher::tasks::{Begun, Cutting, QueryCut},
        term_statistics::TermStatistics,
        top_k::TopK,
        wanted::Stage,
    };
}

#[cfg(feature = "rebuild")]
pub mod rebuild {
    pub use crate::rebuild::{
        daemon::Daemon, error::RebuildError, files::replace, handed::HandedRebuild, history::read,
        job_file::JobFile, status::Status, values::size,
    };
}

#[cfg(any(feature = "program", feature = "rebuild"))]
pub mod report_page {
    pub use crate::report_page::page;
}

pub mod schedule {
    pub use crate::schedule::placement::Rates;
}

pub mod score {
    pub use crate::score::{
        bm25::{Bm25, idf, score},
        bounds::{BoundNorms, code_below},
        fields::{ByField, FieldScoring},
        named::Score,
        parameters::Given,
        wang::Wang,
    };
}

#[cfg(feature = "serve")]
pub mod serve {
    pub use crate::serve::{
        GroupAddress, LiveSnapshot, RunningServer, ServeOptions, Server, Token, live, query_of,
    };
}

pub mod shown {
    pub use crate::shown::{bytes, chain, count, now, number_of, panicked, visible};
}

pub mod text {
    pub use crate::text::{
        analysis::Analysis,
        html::{HtmlText, Markup},
        scan::{Scanner, Stretches, TokenKey},
        stemmer::Stemmer,
        stop_words::{StopList, StopWords},
        tokenizer::{Tokenizer, for_each_token},
        trie_collection::{TRIE_COLLECTIONS, implied_prefix_len, trie_collection},
        unspaced::Unspaced,
    };
}

pub mod tune {
    pub use crate::tune::judged;
}
